//! Headers of synthetic weight files for tests: valid ones, for tests to damage.

/// A tensor to write: its name and shape, outermost dimension first.
pub(super) type NamedShape<'a> = (&'a str, &'a [u64]);

/// A GGUF file with `f16` tensors full of zeros, and one key.
pub(super) fn gguf(tensors: &[NamedShape<'_>]) -> Vec<u8> {
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
pub(super) fn safetensors(tensors: &[NamedShape<'_>]) -> Vec<u8> {
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
