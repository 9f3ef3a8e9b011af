//! The library's samplers and schedulers by their usual names. For the best choice, see each
//! model's own documentation.

use serde::{Deserialize, Serialize};

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal, $label:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name {
            $(#[doc = $label] #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// All of them, in the library's order.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name in settings, which is also the library's.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}

named! {
    /// The method of a step from one noise level to the next.
    Sampler {
        Euler = "euler", "Euler";
        EulerA = "euler_a", "Euler, ancestral";
        Heun = "heun", "Heun";
        Dpm2 = "dpm2", "DPM2";
        DpmPp2sA = "dpm++2s_a", "DPM++ 2S, ancestral";
        DpmPp2m = "dpm++2m", "DPM++ 2M";
        DpmPp2mV2 = "dpm++2mv2", "DPM++ 2M, modified";
        Ipndm = "ipndm", "iPNDM";
        IpndmV = "ipndm_v", "iPNDM for varying steps";
        Lcm = "lcm", "LCM, for distilled models";
        DdimTrailing = "ddim_trailing", "DDIM, trailing";
        Tcd = "tcd", "TCD, for distilled models";
        ResMultistep = "res_multistep", "RES, multistep";
        Res2s = "res_2s", "RES 2S";
        ErSde = "er_sde", "ER-SDE";
        EulerCfgPp = "euler_cfg_pp", "Euler with CFG++";
        EulerACfgPp = "euler_a_cfg_pp", "Euler, ancestral, with CFG++";
        EulerGe = "euler_ge", "Euler, gradient estimation";
    }
}

named! {
    /// The sequence of noise levels.
    Scheduler {
        Discrete = "discrete", "As in training";
        Karras = "karras", "Karras";
        Exponential = "exponential", "Exponential";
        Ays = "ays", "Align your steps";
        Gits = "gits", "GITS";
        SgmUniform = "sgm_uniform", "SGM, uniform";
        Simple = "simple", "Simple";
        Smoothstep = "smoothstep", "Smooth step";
        KlOptimal = "kl_optimal", "KL-optimal";
        Lcm = "lcm", "LCM";
        BongTangent = "bong_tangent", "Bong tangent";
        Ltx2 = "ltx2", "LTX-2's own";
    }
}
