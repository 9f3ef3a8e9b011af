//! What a recorded run of the service did to its data folder, and what it sent.

use std::path::{Path, PathBuf};

use super::calls::{Call, NEVER, calls};
use super::op::Op;
use super::words::{descriptor, quoted, vector};

/// Something that the service sent through a socket.
#[derive(Clone, Debug)]
pub struct Answer {
    /// When the service began to send it.
    pub at: usize,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// A recorded run. Moments are lines of what `strace` wrote.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The operations, each with its moment, in order.
    pub ops: Vec<(usize, Op)>,
    /// What was sent, in order.
    pub answers: Vec<Answer>,
    /// The number of moments.
    pub moments: usize,
}

impl Recording {
    /// Reads what [`record`](super::record) wrote to `log` while the service worked on `folder`.
    /// Panics where a call has effects in the folder that are not modelled.
    pub fn read(log: &Path, folder: &Path) -> Self {
        let log = std::fs::read_to_string(log).unwrap();
        Self::of_lines(log.lines(), folder)
    }

    fn of_lines<'l>(lines: impl Iterator<Item = &'l str>, folder: &Path) -> Self {
        let reader = Reader {
            folders: [folder.to_owned(), folder.canonicalize().unwrap_or_default()],
        };
        let (calls, moments) = calls(lines);
        let (mut ops, mut answers, mut programs) = (Vec::new(), Vec::new(), 0);
        for call in &calls {
            if call.name == "execve" {
                programs += usize::from(call.result() == Some(0));
                assert!(
                    programs <= 1,
                    "descriptors of two processes would be mixed up"
                );
                continue;
            }
            let arguments = call.arguments();
            let op = reader.op(call, &arguments);
            ops.extend(op.unwrap_or_else(|error| panic!("{error}: {}", call.name)));
            answers.extend(reader.answer(call, &arguments));
        }
        ops.sort_by_key(|(at, _)| *at);
        Self {
            ops,
            answers,
            moments,
        }
    }

    /// The same without the operations that `lost` picks: a service that forgot them.
    #[must_use]
    pub fn without(&self, lost: impl Fn(usize, &Op) -> bool) -> Self {
        let mut without = self.clone();
        without.ops.retain(|(at, op)| !lost(*at, op));
        without
    }
}

/// Reads calls of a service that works on a folder, by either of its names.
struct Reader {
    folders: [PathBuf; 2],
}

impl Reader {
    /// `path`, relative to the folder; `None` where it is not inside or the index of SQLite's log.
    fn inside(&self, path: &str) -> Option<String> {
        let path = Path::new(path);
        let folders = self.folders.iter().filter(|one| one.is_absolute());
        let inside = folders
            .filter_map(|folder| path.strip_prefix(folder).ok())
            .next()?;
        let inside = inside.to_str()?.to_owned();
        (!inside.ends_with("-shm")).then_some(inside)
    }

    /// A path in the words of a call: of a folder's descriptor, if any, and of the path itself.
    fn path(&self, folder: Option<&str>, path: &str) -> Option<String> {
        let path = String::from_utf8(quoted(path).ok()?).ok()?;
        let folder = folder.map(|word| descriptor(word).1).unwrap_or_default();
        self.inside(Path::new(&folder).join(path).to_str()?)
    }

    /// A descriptor of something inside, and its path.
    fn file(&self, word: &str) -> Option<(u32, String)> {
        let (fd, path) = descriptor(word);
        Some((fd?, self.inside(&path)?))
    }

    fn answer(&self, call: &Call, arguments: &[&str]) -> Option<Answer> {
        let (_, path) = descriptor(arguments.first()?);
        let sends = path.starts_with("socket:") || path.starts_with("TCP");
        let bytes = match &*call.name {
            "write" | "sendto" if sends => quoted(arguments[1]),
            "writev" | "sendmsg" if sends => vector(arguments[1]),
            _ => return None,
        };
        let bytes = bytes.unwrap_or_else(|error| panic!("{error}"));
        Some(Answer {
            at: call.began,
            bytes,
        })
    }

    /// The operation that a call was, with its moment.
    fn op(&self, call: &Call, words: &[&str]) -> Result<Option<(usize, Op)>, String> {
        // What never ended may have been done in part: only a write shows before its end.
        if matches!(&*call.name, "write" | "writev" | "pwrite64" | "pwritev") {
            return self.write(call, words);
        }
        let Some(result) = call.result() else {
            return Ok(None);
        };
        let op = match &*call.name {
            "close" => self.file(words[0]).map(|(fd, _)| Op::Close { fd }),
            "lseek" => self.file(words[0]).map(|(fd, _)| Op::Seek {
                fd,
                to: small(result),
            }),
            "ftruncate" => match self.file(words[0]) {
                Some((fd, _)) => Some(Op::SetLength {
                    fd,
                    length: words[1].parse().map_err(|_| "no length")?,
                    ended: call.ended,
                }),
                None => None,
            },
            "fsync" | "fdatasync" => self.file(words[0]).map(|(fd, path)| Op::Sync {
                fd,
                path,
                began: call.began,
            }),
            // At the positions of both, as `std::io::copy` does it.
            "copy_file_range" if words[1] == "NULL" && words[3] == "NULL" => {
                self.copy(call, (words[0], words[2]), result, words)?
            }
            "sendfile" if words[2] == "NULL" => {
                self.copy(call, (words[1], words[0]), result, words)?
            }
            "sendto" | "sendmsg" => None,
            _ => self.op_on_names(call, words, result)?,
        };
        let at = match op {
            // Another thread may have the number again before this call is seen to end.
            Some(Op::Close { .. }) => call.began,
            _ => call.ended,
        };
        Ok(op.map(|op| (at, op)))
    }

    fn copy(
        &self,
        call: &Call,
        (from, to): (&str, &str),
        result: u64,
        words: &[&str],
    ) -> Result<Option<Op>, String> {
        let (Some((from, _)), Some((to, _))) = (self.file(from), self.file(to)) else {
            return self.refuse(words).map(|()| None);
        };
        Ok(Some(Op::Copy {
            from,
            to,
            length: small(result),
            ended: call.ended,
        }))
    }

    fn op_on_names(&self, call: &Call, words: &[&str], result: u64) -> Result<Option<Op>, String> {
        let open = |path: Option<String>, flags: &str| {
            path.map(|path| Op::Open {
                fd: u32::try_from(result).unwrap_or_default(),
                path,
                flags: flags.to_owned(),
            })
        };
        let both = |from: Option<String>, to: Option<String>| match (from, to) {
            (Some(from), Some(to)) => Ok(Some((from, to))),
            (None, None) => Ok(None),
            _ => Err("a name from or to elsewhere is not modelled".to_owned()),
        };
        let link = |(from, to)| Op::Link { from, to };
        let rename = |(from, to)| Op::Rename { from, to };
        let unlink = |path: Option<String>| path.map(|path| Op::Unlink { path });
        let make = |path: Option<String>| path.map(|path| Op::MakeFolder { path });
        let remove = |path: Option<String>| path.map(|path| Op::RemoveFolder { path });
        Ok(match &*call.name {
            "open" => open(self.path(None, words[0]), words[1]),
            "openat" => open(self.path(Some(words[0]), words[1]), words[2]),
            "creat" => open(self.path(None, words[0]), "O_WRONLY|O_CREAT|O_TRUNC"),
            "link" => both(self.path(None, words[0]), self.path(None, words[1]))?.map(link),
            "linkat" => both(
                self.path(Some(words[0]), words[1]),
                self.path(Some(words[2]), words[3]),
            )?
            .map(link),
            "rename" => both(self.path(None, words[0]), self.path(None, words[1]))?.map(rename),
            // With flags it may refuse to replace, or exchange two names.
            "renameat" | "renameat2" if words.get(4).is_none_or(|flags| *flags == "0") => both(
                self.path(Some(words[0]), words[1]),
                self.path(Some(words[2]), words[3]),
            )?
            .map(rename),
            "mkdir" => make(self.path(None, words[0])),
            "mkdirat" => make(self.path(Some(words[0]), words[1])),
            "rmdir" => remove(self.path(None, words[0])),
            "unlink" => unlink(self.path(None, words[0])),
            "unlinkat" if words[2].contains("AT_REMOVEDIR") => {
                remove(self.path(Some(words[0]), words[1]))
            }
            "unlinkat" => unlink(self.path(Some(words[0]), words[1])),
            _ => return self.refuse(words).map(|()| None),
        })
    }

    /// An error where one of the words of a call is, or names, something inside.
    fn refuse(&self, words: &[&str]) -> Result<(), String> {
        let touches = |word: &&&str| self.file(word).is_some() || self.path(None, word).is_some();
        match words.iter().find(touches) {
            Some(word) => Err(format!("not modelled on {word}")),
            None => Ok(()),
        }
    }

    fn write(&self, call: &Call, words: &[&str]) -> Result<Option<(usize, Op)>, String> {
        let Some((fd, _)) = self.file(words[0]) else {
            return Ok(None);
        };
        let mut bytes = match &*call.name {
            "write" | "pwrite64" => quoted(words[1])?,
            _ => vector(words[1])?,
        };
        match call.result() {
            Some(written) => bytes.truncate(small(written)),
            None if call.ended == NEVER => {}
            None => return Ok(None),
        }
        let at = match &*call.name {
            "pwrite64" | "pwritev" => Some(words[3].parse().map_err(|_| "no place to write to")?),
            _ => None,
        };
        let op = Op::Write {
            fd,
            at,
            bytes: bytes.into(),
            ended: call.ended,
        };
        Ok(Some((call.began, op)))
    }
}

fn small(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(log: &str) -> Recording {
        Recording::of_lines(log.lines(), Path::new("/d"))
    }

    #[test]
    fn what_is_not_in_the_folder_is_left_out() {
        let log = "1 execve(\"/kinora\", [\"kinora\"], 0x7ffe) = 0\n\
                   1 openat(AT_FDCWD</>, \"/other\", O_RDWR|O_CREAT, 0600) = 3</other>\n\
                   1 write(3</other>, \"x\", 1) = 1\n\
                   1 pwrite64(3</d/kinora.db-shm>, \"x\", 1, 0) = 1\n\
                   1 renameat2(AT_FDCWD</>, \"/a\", AT_FDCWD</>, \"/b\", 0) = 0\n\
                   1 sendfile(9<socket:[5]>, 4</other>, NULL, 5) = 5\n";
        assert!(recording(log).ops.is_empty());
    }

    #[test]
    fn operations_are_in_the_order_in_which_they_count() {
        let log = "1 openat(AT_FDCWD</>, \"/d/a\", O_RDWR|O_CREAT, 0600) = 3</d/a>\n\
                   2 fdatasync(3</d/a> <unfinished ...>\n\
                   1 pwrite64(3</d/a>, \"abcd\", 4, 100 <unfinished ...>\n\
                   2 <... fdatasync resumed>) = 0\n\
                   1 <... pwrite64 resumed>) = 3\n\
                   1 fdatasync(3</d/a>) = -1 EIO (Input/output error) (INJECTED)\n\
                   1 linkat(AT_FDCWD</>, \"/d/a\", 7</d/f>, \"b\", 0) = 0\n\
                   1 writev(9<socket:[5]>, [{iov_base=\"HTTP/1.1 200\", iov_len=12}], 1) = 12\n\
                   1 pwrite64(3</d/a>, \"never\", 5, 0 <unfinished ...>\n";
        let recording = recording(log);
        let shown: Vec<String> = recording.ops.iter().map(|op| format!("{op:?}")).collect();
        assert_eq!(shown.len(), 5, "{shown:#?}");
        assert!(shown[0].starts_with("(0, Open { fd: 3, path: \"a\""));
        let written = "(2, Write { fd: 3, at: Some(100), bytes: [97, 98, 99], ended: 4 })";
        assert_eq!(shown[1], written);
        assert_eq!(shown[2], "(3, Sync { fd: 3, path: \"a\", began: 1 })");
        assert_eq!(shown[3], "(6, Link { from: \"a\", to: \"f/b\" })");
        assert!(shown[4].ends_with(&format!("ended: {NEVER} }})")));
        assert_eq!((recording.answers[0].at, recording.moments), (7, 9));
        assert_eq!(recording.answers[0].bytes, b"HTTP/1.1 200");
    }

    #[test]
    fn renames_and_copies_are_read_from_every_call_that_makes_them() {
        let log = "1 rename(\"/d/a\", \"/d/b\") = 0\n\
                   1 renameat2(AT_FDCWD</>, \"/d/a\", 7</d/f>, \"b\", 0) = 0\n\
                   1 copy_file_range(3</d/#7>(deleted), NULL, 4</d/b>, NULL, 9, 0) = 5\n\
                   1 sendfile(4</d/b>, 3</d/a>, NULL, 9) = 5\n";
        let ops = recording(log).ops;
        let shown: Vec<String> = ops.iter().map(|(_, op)| format!("{op:?}")).collect();
        let copy = |ended| format!("Copy {{ from: 3, to: 4, length: 5, ended: {ended} }}");
        let rename = |to| format!("Rename {{ from: \"a\", to: \"{to}\" }}");
        assert_eq!(shown, [rename("b"), rename("f/b"), copy(2), copy(3)]);
    }

    #[test]
    #[should_panic(expected = "not modelled")]
    fn a_call_that_is_not_modelled_is_refused() {
        let flags = "RENAME_EXCHANGE";
        recording(&format!(
            "1 renameat2(AT_FDCWD</>, \"/d/a\", AT_FDCWD</>, \"/d/b\", {flags}) = 0\n"
        ));
    }

    #[test]
    #[should_panic(expected = "from or to elsewhere")]
    fn so_is_a_file_that_comes_from_outside() {
        recording("1 rename(\"/other\", \"/d/b\") = 0\n");
    }

    #[test]
    #[should_panic(expected = "not modelled")]
    fn so_is_one_on_a_descriptor_of_which_one_is_elsewhere() {
        recording("1 copy_file_range(3</d/a>, NULL, 4</other>, NULL, 5, 0) = 5\n");
    }

    #[test]
    #[should_panic(expected = "cut off by strace")]
    fn bytes_that_were_left_out_are_refused() {
        recording("1 pwrite64(3</d/a>, \"abc\"..., 4000, 0) = 4000\n");
    }

    #[test]
    #[should_panic(expected = "two processes")]
    fn a_second_program_is_refused() {
        recording(&"1 execve(\"/kinora\", [\"kinora\"], 0x7ffe) = 0\n".repeat(2));
    }
}
