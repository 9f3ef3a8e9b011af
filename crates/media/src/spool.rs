//! Stores coded samples until the file is written: an unlinked temporary file and the samples'
//! sizes. It never outlives the recorder, not even after a crash.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

/// Samples in coding order.
pub(crate) struct SampleSpool {
    file: BufWriter<File>,
    sizes: Vec<u32>,
}

/// A finished spool; read it once from its start.
pub(crate) struct SpooledTrack {
    pub samples: BufReader<File>,
    /// The size of each sample in bytes.
    pub sizes: Vec<u32>,
}

impl SampleSpool {
    /// Opens an unnamed file in `folder`, on the same disk as the result.
    pub(crate) fn create_in(folder: &Path) -> io::Result<Self> {
        // Unlinked from the start: the system frees it even if the process is killed.
        let file = BufWriter::with_capacity(256 << 10, tempfile::tempfile_in(folder)?);
        Ok(Self {
            file,
            sizes: Vec::new(),
        })
    }

    /// Appends consecutive samples whose sizes add up to `bytes`.
    pub(crate) fn append(&mut self, bytes: &[u8], sizes: &[u32]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.sizes.extend_from_slice(sizes);
        Ok(())
    }

    /// Number of samples so far.
    pub(crate) fn len(&self) -> usize {
        self.sizes.len()
    }

    pub(crate) fn finish(self) -> io::Result<SpooledTrack> {
        let mut file = self
            .file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(SpooledTrack {
            samples: BufReader::with_capacity(256 << 10, file),
            sizes: self.sizes,
        })
    }
}
