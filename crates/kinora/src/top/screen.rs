//! The terminal: a separate screen while the view is shown, restored afterwards.

use std::io::{Read, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

/// If the terminal does not report its size.
const COLUMNS: u16 = 80;
const ROWS: u16 = 24;
/// Alternate screen, no cursor, and no line wrapping, since some characters are wider than one
/// column.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// The screen; restored when dropped.
pub(super) struct Screen {
    /// The previous modes of the keyboard.
    before: Option<Termios>,
}

/// Columns and rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

impl Screen {
    /// Takes over the screen, with unbuffered keys.
    pub(super) fn take() -> Self {
        let before = tcgetattr(std::io::stdin()).ok();
        if let Some(before) = &before {
            let mut modes = before.clone();
            modes
                .local_modes
                .remove(LocalModes::ICANON | LocalModes::ECHO);
            // Without it, q needs Enter.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &modes);
        }
        write(ENTER);
        Self { before }
    }

    /// Its current size.
    pub(super) fn size(&self) -> Size {
        let size = tcgetwinsize(std::io::stdout()).ok();
        let known =
            |part: Option<u16>, default| usize::from(part.filter(|n| *n > 0).unwrap_or(default));
        Size {
            columns: known(size.map(|size| size.ws_col), COLUMNS),
            rows: known(size.map(|size| size.ws_row), ROWS),
        }
    }

    /// Draws lines over the previous ones, without flicker.
    pub(super) fn draw(&self, lines: &[String]) {
        let mut out = String::from("\x1b[H");
        for (number, line) in lines.iter().enumerate() {
            if number > 0 {
                out.push_str("\r\n");
            }
            out.push_str(line);
            out.push_str("\x1b[K");
        }
        out.push_str("\x1b[J");
        write(&out);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        write(LEAVE);
        if let Some(before) = &self.before {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}

fn write(text: &str) {
    let mut out = std::io::stdout().lock();
    // If the terminal is gone, SIGHUP follows.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Keys, read on a separate thread that ends with the process.
pub(super) struct Keys(mpsc::Receiver<u8>);

impl Keys {
    pub(super) fn listen() -> Self {
        let (pressed, keys) = mpsc::channel(16);
        std::thread::spawn(move || {
            for key in std::io::stdin().lock().bytes() {
                let Ok(key) = key else { return };
                if pressed.blocking_send(key).is_err() {
                    return;
                }
            }
        });
        Self(keys)
    }

    /// Waits until q is pressed; for ever if there is no keyboard.
    pub(super) async fn quit(&mut self) {
        loop {
            match self.0.recv().await {
                Some(b'q' | b'Q') => return,
                Some(_) => {}
                None => std::future::pending().await,
            }
        }
    }
}
