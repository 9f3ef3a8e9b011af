//! Compares what the configuration promises for an engine with what the engine says it can do. An
//! engine that can do more is fine.

use kinora_engine::EngineCapabilities;

use crate::protocol::EngineHello;

/// The first promise that the engine does not keep, as a sentence for its operator; `None` if it
/// keeps all.
pub(crate) fn find_mismatch(promises: EngineCapabilities, hello: &EngineHello) -> Option<String> {
    let (ours, theirs) = (promises.grid, hello.frames);
    if promises.features.restricted_to(hello.features) != promises.features {
        return Some(format!(
            "describe.features promises {:?}, and the engine has {:?}",
            promises.features, hello.features
        ));
    }
    // Likewise for sizes: multiples of 32 are also multiples of 16.
    if hello.size_multiple == 0 || ours.size_multiple % hello.size_multiple != 0 {
        return Some(format!(
            "describe.size_multiple is {}, and the engine renders multiples of {}",
            ours.size_multiple, hello.size_multiple
        ));
    }
    // Every length that the configuration promises must be one that the engine renders. Example:
    // promised 8 n + 1 is a subset of the engine's 4 n + 1, because 8 is a multiple of 4 and
    // both offsets leave the remainder 1.
    let is_on_theirs = theirs.step > 0
        && ours.frame_step % theirs.step == 0
        && ours.frame_offset % theirs.step == theirs.offset % theirs.step
        && ours.frame_offset >= theirs.offset;
    if !is_on_theirs {
        return Some(format!(
            "describe.frames is {} n + {}, and the engine renders {} n + {} frames",
            ours.frame_step, ours.frame_offset, theirs.step, theirs.offset
        ));
    }
    if hello.fps != 0 && hello.fps != promises.fps {
        let ours = match promises.fps {
            0 => "0, for any,".to_owned(),
            fps => format!("{fps},"),
        };
        return Some(format!(
            "describe.fps is {ours} and the engine makes {} frames per second",
            hello.fps
        ));
    }
    if promises.presets && !hello.presets {
        return Some(
            "the configuration promises presets (`settings` of [[models]]), and the engine takes none"
                .to_owned(),
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use kinora_contract::Features;
    use kinora_engine::RenderGrid;

    use super::*;
    use crate::protocol::FrameGrid;

    fn promises() -> EngineCapabilities {
        EngineCapabilities {
            features: Features {
                text_to_video: true,
                ..Features::default()
            },
            grid: RenderGrid {
                size_multiple: 32,
                frame_step: 8,
                frame_offset: 1,
            },
            fps: 16,
            presets: true,
        }
    }

    fn hello() -> EngineHello {
        EngineHello {
            features: promises().features,
            size_multiple: 16,
            frames: FrameGrid { step: 4, offset: 1 },
            fps: 16,
            presets: true,
            ..EngineHello::of_this_executable()
        }
    }

    #[test]
    fn an_engine_that_can_do_more_agrees() {
        assert_eq!(find_mismatch(promises(), &hello()), None);
        let plain = EngineCapabilities {
            presets: false,
            ..promises()
        };
        assert_eq!(find_mismatch(plain, &hello()), None);
        let any = EngineHello { fps: 0, ..hello() };
        assert_eq!(find_mismatch(promises(), &any), None);
        let any_rate = EngineCapabilities {
            fps: 0,
            ..promises()
        };
        assert_eq!(find_mismatch(any_rate, &any), None);
        let denied = find_mismatch(any_rate, &hello()).unwrap();
        assert!(
            denied.contains("describe.fps is 0, for any, and the engine makes 16"),
            "{denied}"
        );
    }

    #[test]
    fn what_an_engine_cannot_do_is_named() {
        for (hello, named) in [
            (
                EngineHello {
                    features: Features::default(),
                    ..hello()
                },
                "features",
            ),
            (
                EngineHello {
                    size_multiple: 64,
                    ..hello()
                },
                "multiples of 64",
            ),
            (
                EngineHello {
                    size_multiple: 0,
                    ..hello()
                },
                "multiples of 0",
            ),
            (
                EngineHello {
                    frames: FrameGrid {
                        step: 16,
                        offset: 1,
                    },
                    ..hello()
                },
                "16 n + 1",
            ),
            (
                EngineHello {
                    frames: FrameGrid { step: 4, offset: 0 },
                    ..hello()
                },
                "4 n + 0",
            ),
            (
                EngineHello {
                    frames: FrameGrid { step: 0, offset: 0 },
                    ..hello()
                },
                "0 n + 0",
            ),
            (EngineHello { fps: 24, ..hello() }, "24 frames per second"),
            (
                EngineHello {
                    presets: false,
                    ..hello()
                },
                "promises presets",
            ),
        ] {
            let denied = find_mismatch(promises(), &hello).unwrap();
            assert!(denied.contains(named), "{denied}");
        }
    }
}
