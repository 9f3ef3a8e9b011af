//! The rules of a disk that forgets, one at a time.

use super::*;

/// The entries of a disk, one a line: folders, and files with their bytes.
fn shown(disk: &Disk, loss: Loss<'_>) -> String {
    let line = |entry: Entry| match entry.bytes {
        Some(bytes) => format!("{}={}\n", entry.path.display(), bytes.escape_ascii()),
        None => format!("{}/\n", entry.path.display()),
    };
    disk.after(loss).into_iter().skip(1).map(line).collect()
}

fn open(fd: u32, path: &str, flags: &str) -> Op {
    let (path, flags) = (path.to_owned(), flags.to_owned());
    Op::Open { fd, path, flags }
}

fn write(fd: u32, bytes: &[u8]) -> Op {
    let bytes = bytes.into();
    Op::Write {
        fd,
        at: None,
        bytes,
        ended: 0,
    }
}

fn sync(fd: u32) -> Op {
    let path = String::new();
    Op::Sync {
        fd,
        path,
        began: 1000,
    }
}

fn after(ops: impl IntoIterator<Item = Op>) -> Disk {
    let mut disk = Disk::default();
    ops.into_iter()
        .enumerate()
        .for_each(|(at, op)| disk.apply(at, &op));
    disk
}

#[test]
fn a_file_is_there_once_it_and_its_folder_are_synced() {
    let new = || {
        vec![
            open(3, "a", "O_RDWR|O_CREAT"),
            write(3, b"x"),
            write(3, b"y"),
        ]
    };
    let folder = || [open(4, "", "O_RDONLY"), sync(4)];
    assert_eq!(shown(&after(new()), Loss::All), "");
    assert_eq!(shown(&after(new()), Loss::Nothing), "a=xy\n");
    let named = after(new().into_iter().chain(folder()));
    assert_eq!(shown(&named, Loss::All), "a=\n");
    let unnamed = after(new().into_iter().chain([sync(3)]));
    assert_eq!(shown(&unnamed, Loss::All), "");
    let both = after(new().into_iter().chain([sync(3)]).chain(folder()));
    assert_eq!(shown(&both, Loss::All), "a=xy\n");
}

#[test]
fn a_second_name_is_as_uncertain_as_the_first_and_names_the_same_bytes() {
    let path = |path: &str| path.to_owned();
    let mut disk = after([
        Op::MakeFolder { path: path("f") },
        open(3, "a", "O_WRONLY|O_CREAT"),
        write(3, b"x"),
        Op::Link {
            from: path("a"),
            to: path("f/b"),
        },
        Op::Unlink { path: path("a") },
        sync(3),
        open(4, "f", "O_RDONLY|O_DIRECTORY"),
        sync(4),
    ]);
    assert_eq!(shown(&disk, Loss::Nothing), "f/\nf/b=x\n");
    // The folder's own name was never synced.
    assert_eq!(shown(&disk, Loss::All), "");
    disk.apply(10, &open(5, "", "O_RDONLY"));
    disk.apply(11, &sync(5));
    assert_eq!(shown(&disk, Loss::All), "f/\nf/b=x\n");
    disk.apply(12, &Op::Unlink { path: path("f/b") });
    disk.apply(13, &Op::RemoveFolder { path: path("f") });
    assert_eq!(shown(&disk, Loss::All), "f/\nf/b=x\n");
    assert_eq!(shown(&disk, Loss::Nothing), "");
    // Each of the two may have gone.
    assert_eq!(shown(&disk, Loss::Some(&mut |_| 0)), "");
    assert_eq!(shown(&disk, Loss::Some(&mut |_| 1)), "f/\nf/b=x\n");
}

#[test]
fn descriptors_have_positions_of_their_own() {
    let disk = after([
        open(3, "a", "O_RDWR|O_CREAT"),
        write(3, b"abcdef"),
        open(4, "a", "O_WRONLY|O_APPEND"),
        Op::Seek { fd: 3, to: 1 },
        write(3, b"X"),
        write(4, b"end"),
        Op::Close { fd: 3 },
        open(3, "a", "O_WRONLY"),
        write(3, b"Y"),
    ]);
    assert_eq!(shown(&disk, Loss::Nothing), "a=YXcdefend\n");
    let cut = after([
        open(3, "a", "O_RDWR|O_CREAT"),
        write(3, b"abc"),
        open(4, "a", "O_WRONLY|O_CREAT|O_TRUNC"),
    ]);
    assert_eq!(shown(&cut, Loss::Nothing), "a=\n");
}

#[test]
fn bytes_are_copied_from_position_to_position_also_out_of_a_file_without_a_name() {
    let disk = after([
        open(3, "", "O_RDWR|O_TMPFILE"),
        write(3, b"abcdef"),
        Op::Seek { fd: 3, to: 1 },
        open(4, "a", "O_WRONLY|O_CREAT"),
        write(4, b"X"),
        Op::Copy {
            from: 3,
            to: 4,
            length: 2,
            ended: 0,
        },
        Op::Copy {
            from: 3,
            to: 4,
            length: 3,
            ended: 0,
        },
    ]);
    assert_eq!(shown(&disk, Loss::Nothing), "a=Xbcdef\n");
}

#[test]
#[should_panic(expected = "is not there")]
fn a_file_that_came_in_another_way_is_noticed() {
    after([open(3, "a", "O_RDONLY")]);
}

#[test]
fn a_renamed_file_has_one_of_its_names_in_one_folder() {
    let path = |path: &str| path.to_owned();
    let mut disk = after([
        open(3, "new", "O_WRONLY|O_CREAT"),
        write(3, b"x"),
        sync(3),
        open(4, "", "O_RDONLY"),
        sync(4),
    ]);
    let rename = Op::Rename {
        from: path("new"),
        to: path("a"),
    };
    disk.apply(2000, &rename);
    assert_eq!(shown(&disk, Loss::Nothing), "a=x\n");
    assert_eq!(shown(&disk, Loss::All), "new=x\n");
    for (lost, left) in [(0, "a=x\n"), (1, "new=x\n")] {
        assert_eq!(shown(&disk, Loss::Some(&mut |_| lost)), left);
    }
    let synced = Op::Sync {
        fd: 4,
        path: path(""),
        began: 2001,
    };
    disk.apply(2002, &synced);
    assert_eq!(shown(&disk, Loss::All), "a=x\n");
}

#[test]
fn a_rename_to_another_folder_is_two_changes() {
    let path = |path: &str| path.to_owned();
    let disk = after([
        Op::MakeFolder { path: path("f") },
        open(3, "a", "O_WRONLY|O_CREAT"),
        Op::Rename {
            from: path("a"),
            to: path("f/b"),
        },
        open(4, "", "O_RDONLY"),
        sync(4),
    ]);
    assert_eq!(shown(&disk, Loss::Nothing), "f/\nf/b=\n");
    // Of the two folders one was synced.
    assert_eq!(shown(&disk, Loss::All), "f/\n");
}

#[test]
fn a_folder_may_be_used_before_the_call_that_made_it_is_seen_to_end() {
    let path = |path: &str| path.to_owned();
    let disk = after([
        open(3, "a", "O_WRONLY|O_CREAT"),
        Op::Link {
            from: path("a"),
            to: path("f/g/b"),
        },
        Op::MakeFolder { path: path("f") },
        Op::MakeFolder { path: path("f/g") },
        Op::Unlink { path: path("a") },
    ]);
    assert_eq!(shown(&disk, Loss::Nothing), "f/\nf/g/\nf/g/b=\n");
    assert_eq!(shown(&disk, Loss::All), "");
}
