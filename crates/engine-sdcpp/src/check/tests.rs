//! Complete checks of synthetic files on disk, and headers damaged in every way.

use std::path::Path;

use proptest::prelude::*;
use serde_json::json;

use super::header::WeightHeader;
use super::*;
use crate::settings::tests::settings;
use crate::{Family, Variant};

const TALE: &str = "blocks.0.cross_attn.norm_k.weight";

fn wan_tensors(blocks: u64, channels: u64) -> Vec<(String, Vec<u64>)> {
    let mut tensors = vec![
        (
            "patch_embedding.weight".to_owned(),
            vec![8, channels, 1, 2, 2],
        ),
        ("patch_embedding.bias".to_owned(), vec![8]),
    ];
    for block in 0..blocks {
        tensors.push((format!("blocks.{block}.cross_attn.norm_k.weight"), vec![4]));
    }
    tensors
}

fn borrowed(tensors: &[(String, Vec<u64>)]) -> Vec<NamedShape<'_>> {
    let mut borrowed = Vec::new();
    for (name, shape) in tensors {
        borrowed.push((name.as_str(), shape.as_slice()));
    }
    borrowed
}

fn umt5() -> Vec<(String, Vec<u64>)> {
    let mut tensors = vec![("token_embd.weight".to_owned(), vec![256_384, 1])];
    for block in 0..24 {
        tensors.push((format!("enc.blk.{block}.attn_rel_b.weight"), vec![2, 2]));
    }
    tensors
}

const VAE: &[NamedShape<'static>] = &[
    ("decoder.middle.0.residual.0.gamma", &[4, 1, 1, 1]),
    ("encoder.conv1.weight", &[4, 3, 3, 3, 3]),
    ("decoder.conv2.bias", &[3]),
    ("conv2.bias", &[16]),
];

/// A valid Wan model in `folder`.
fn wan(folder: &Path) -> Settings {
    let write = |name: &str, bytes: Vec<u8>| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    settings(&json!({
        "diffusion_model": write("wan.gguf", gguf(&borrowed(&wan_tensors(30, 16)))),
        "vae": write("vae.safetensors", safetensors(VAE)),
        "text_encoder": write("umt5.gguf", gguf(&borrowed(&umt5()))),
    }))
}

fn problems(report: &ModelReport, role: Role) -> Vec<String> {
    let file = report.files.iter().find(|file| file.role == role).unwrap();
    file.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn good_files_are_good() {
    let folder = tempfile::tempdir().unwrap();
    let report = check(&wan(folder.path()));
    assert!(report.is_good(), "{report}");
    let text = report.to_string();
    assert!(text.contains("30 blocks, 16 channels"), "{text}");
    assert!(
        text.contains("safetensors") && text.contains("GGUF"),
        "{text}"
    );
}

#[test]
fn every_fault_of_a_file_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let good = wan(folder.path());
    let path = &good.diffusion_model;
    let whole = std::fs::read(path).unwrap();
    let after = |bytes: &[u8]| {
        std::fs::write(path, bytes).unwrap();
        problems(&check(&good), Role::DiffusionModel).join("; ")
    };
    let cut = after(&whole[..whole.len() - 40]);
    assert!(cut.contains("is cut short"), "{cut}");
    assert!(after(&whole[..100]).contains("truncated"));
    assert_eq!(
        after(b"PK\x03\x04 something"),
        "is neither GGUF nor safetensors"
    );
    assert_eq!(after(b""), "is neither GGUF nor safetensors");
    let other = after(&gguf(&[("a.weight", &[2])]));
    assert_eq!(other, format!("has no tensor {TALE}"));
    let blocks = after(&gguf(&borrowed(&wan_tensors(31, 16))));
    assert_eq!(blocks, "has 31 blocks; Wan models have 30 or 40");
    let frame = after(&gguf(&borrowed(&wan_tensors(40, 36))));
    assert!(frame.contains("it looks like i2v"), "{frame}");
    let mut scaled = wan_tensors(30, 16);
    scaled.push(("blocks.0.cross_attn.k.scale_weight".to_owned(), vec![1]));
    let scaled = after(&gguf(&borrowed(&scaled)));
    assert!(scaled.contains("scaled FP8"), "{scaled}");
    std::fs::remove_file(path).unwrap();
    let gone = check(&good);
    assert_eq!(
        problems(&gone, Role::DiffusionModel),
        ["there is no such file"]
    );
    assert!(!gone.is_good());
}

#[test]
fn a_folder_is_no_weight_file() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        diffusion_model: folder.path().to_owned(),
        ..wan(folder.path())
    };
    let report = check(&settings);
    assert_eq!(problems(&report, Role::DiffusionModel).len(), 1);
}

#[test]
fn the_vae_and_text_encoder_of_another_model_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let good = wan(folder.path());
    let ti2v = Settings {
        variant: Some(Variant::Ti2v),
        ..good.clone()
    };
    let report = check(&ti2v);
    assert!(
        problems(&report, Role::Vae)[0].contains("Wan 2.2 VAE"),
        "{report}"
    );
    let mut t5 = umt5();
    t5[0].1[0] = 32_128;
    std::fs::write(&good.text_encoder, gguf(&borrowed(&t5))).unwrap();
    let report = check(&good);
    let text = problems(&report, Role::TextEncoder);
    assert!(text[0].contains("umt5-xxl"), "{report}");
}

#[test]
fn weights_that_look_through_clip_need_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut tensors = wan_tensors(40, 36);
    tensors.push(("img_emb.proj.0.weight".to_owned(), vec![2]));
    let settings = Settings {
        variant: Some(Variant::I2v),
        ..wan(folder.path())
    };
    std::fs::write(&settings.diffusion_model, gguf(&borrowed(&tensors))).unwrap();
    let report = check(&settings);
    assert_eq!(report.missing.len(), 1);
    assert_eq!(report.missing[0].0, Role::ClipVision);
    assert!(!report.is_good());
    assert!(report.to_string().contains("clip_vision: not given"));
}

#[test]
fn a_vace_model_is_told_from_a_plain_one() {
    let folder = tempfile::tempdir().unwrap();
    let plain = wan(folder.path());
    let vace = Settings {
        family: Family::WanVace,
        ..plain.clone()
    };
    let report = check(&vace);
    let without = problems(&report, Role::DiffusionModel);
    assert_eq!(without, ["has no tensor vace_patch_embedding.weight"]);
    let mut tensors = wan_tensors(30, 16);
    tensors.push(("vace_patch_embedding.weight".to_owned(), vec![2]));
    std::fs::write(&plain.diffusion_model, gguf(&borrowed(&tensors))).unwrap();
    assert!(check(&vace).is_good());
    let report = check(&plain);
    assert!(problems(&report, Role::DiffusionModel)[0].contains("wan-vace"));
}

fn parse(bytes: &[u8]) -> Result<WeightHeader, FileProblem> {
    super::parse(bytes, bytes.len() as u64)
}

#[test]
fn lengths_beyond_all_bounds_are_not_believed() {
    // Each eight-byte field in turn gets a huge value.
    for file in [gguf(&[("a", &[2, 3])]), safetensors(&[("a", &[2, 3])])] {
        for place in 4..file.len() - 8 {
            let mut wrong = file.clone();
            wrong[place..place + 8].fill(0xff);
            let _ = parse(&wrong);
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(sides in proptest::collection::vec(1_u64..6, 0..5)) {
        for file in [gguf(&[("a", &sides), ("b", &[3])]), safetensors(&[("a", &sides), ("b", &[3])])] {
            let header = parse(&file).unwrap();
            prop_assert_eq!(&header.tensors[0].shape, &sides);
            prop_assert_eq!(&header.tensors[1].name, "b");
            prop_assert!(header.data_end <= file.len() as u64);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        begin in 0_usize..3,
    ) {
        let begun = [&b"GGUF\x03\0\0\0\x02\0\0\0\0\0\0\0"[..], &b"\x40\0\0\0\0\0\0\0{"[..], &b""[..]][begin];
        let _ = parse(&[begun, &bytes].concat());
    }

    #[test]
    fn no_bit_flip_makes_it_panic(place: usize, bit in 0_u8..8, kind: bool) {
        let tensors: &[NamedShape<'_>] = &[("blocks.0.a", &[2, 3]), ("b", &[4])];
        let mut file = if kind { gguf(tensors) } else { safetensors(tensors) };
        let place = place % file.len();
        file[place] ^= 1 << bit;
        let _ = parse(&file);
    }
}

/// A tensor to write: its name and shape, outermost dimension first.
type NamedShape<'a> = (&'a str, &'a [u64]);

/// A GGUF file with `f16` tensors full of zeros, and one key.
fn gguf(tensors: &[NamedShape<'_>]) -> Vec<u8> {
    let mut file = b"GGUF".to_vec();
    file.extend(3_u32.to_le_bytes());
    file.extend((tensors.len() as u64).to_le_bytes());
    file.extend(1_u64.to_le_bytes());
    text(&mut file, "general.architecture");
    file.extend(8_u32.to_le_bytes());
    text(&mut file, "made up");
    let mut offset = 0_u64;
    for (name, shape) in tensors {
        text(&mut file, name);
        file.extend((shape.len() as u32).to_le_bytes());
        for side in shape.iter().rev() {
            file.extend(side.to_le_bytes());
        }
        file.extend(1_u32.to_le_bytes());
        file.extend(offset.to_le_bytes());
        offset += (shape.iter().product::<u64>() * 2).next_multiple_of(32);
    }
    file.resize(file.len().next_multiple_of(32) + offset as usize, 0);
    file
}

fn text(file: &mut Vec<u8>, text: &str) {
    file.extend((text.len() as u64).to_le_bytes());
    file.extend(text.as_bytes());
}

/// A safetensors file with `F16` tensors full of zeros.
fn safetensors(tensors: &[NamedShape<'_>]) -> Vec<u8> {
    let mut offset = 0_u64;
    let mut entries = vec![r#""__metadata__":{"format":"pt"}"#.to_owned()];
    for (name, shape) in tensors {
        let end = offset + shape.iter().product::<u64>() * 2;
        entries.push(format!(
            r#""{name}":{{"dtype":"F16","shape":{shape:?},"data_offsets":[{offset},{end}]}}"#
        ));
        offset = end;
    }
    let header = format!("{{{}}}", entries.join(","));
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.resize(file.len() + offset as usize, 0);
    file
}
