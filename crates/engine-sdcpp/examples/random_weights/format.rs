//! The two formats of weight files, written as a stream: the header, then each tensor's bytes as
//! they are made.

use std::io::{self, Write};

use super::tensor::Tensor;

#[derive(Clone, Copy)]
pub(crate) enum Format {
    /// <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>, version 3.
    Gguf,
    /// <https://github.com/huggingface/safetensors#format>
    Safetensors,
}

const ALIGNMENT: u64 = 32;
/// A GGUF tensor has no more dimensions; outer ones are merged, as every converter does.
const DIMENSIONS_MAX: usize = 4;

impl Format {
    /// How files of it end.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Gguf => "gguf",
            Self::Safetensors => "safetensors",
        }
    }

    pub(crate) fn write(
        self,
        out: &mut impl Write,
        tensors: &[Tensor],
        seed: u64,
    ) -> io::Result<()> {
        let (header, alignment) = match self {
            Self::Gguf => (gguf(tensors), ALIGNMENT),
            Self::Safetensors => (safetensors(tensors), 1),
        };
        out.write_all(&header)?;
        for tensor in tensors {
            let bytes = tensor.bytes();
            tensor.write(out, seed)?;
            let padding = bytes.next_multiple_of(alignment) - bytes;
            (0..padding).try_for_each(|_| out.write_all(&[0]))?;
        }
        Ok(())
    }
}

fn text(header: &mut Vec<u8>, text: &str) {
    header.extend((text.len() as u64).to_le_bytes());
    header.extend(text.as_bytes());
}

fn gguf(tensors: &[Tensor]) -> Vec<u8> {
    const VERSION: u32 = 3;
    const STRING: u32 = 8;
    let mut header = b"GGUF".to_vec();
    header.extend(VERSION.to_le_bytes());
    header.extend((tensors.len() as u64).to_le_bytes());
    header.extend(1_u64.to_le_bytes());
    text(&mut header, "general.name");
    header.extend(STRING.to_le_bytes());
    text(&mut header, "random weights");
    let mut offset = 0_u64;
    for tensor in tensors {
        text(&mut header, &tensor.name);
        let mut shape = tensor.shape.clone();
        while shape.len() > DIMENSIONS_MAX {
            let outermost = shape.remove(0);
            shape[0] *= outermost;
        }
        header.extend((shape.len() as u32).to_le_bytes());
        for side in shape.iter().rev() {
            header.extend(side.to_le_bytes());
        }
        header.extend(tensor.kind.number().to_le_bytes());
        header.extend(offset.to_le_bytes());
        offset += tensor.bytes().next_multiple_of(ALIGNMENT);
    }
    let length = header.len().next_multiple_of(ALIGNMENT as usize);
    header.resize(length, 0);
    header
}

fn safetensors(tensors: &[Tensor]) -> Vec<u8> {
    let mut offset = 0_u64;
    let mut entries = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        let (name, kind, shape) = (&tensor.name, tensor.kind.name(), &tensor.shape);
        let end = offset + tensor.bytes();
        entries.push(format!(
            r#""{name}":{{"dtype":"{kind}","shape":{shape:?},"data_offsets":[{offset},{end}]}}"#
        ));
        offset = end;
    }
    let mut json = format!("{{{}}}", entries.join(","));
    // Blanks, so that the tensors begin on a multiple of eight.
    while json.len() % 8 != 0 {
        json.push(' ');
    }
    let mut header = (json.len() as u64).to_le_bytes().to_vec();
    header.extend(json.as_bytes());
    header
}
