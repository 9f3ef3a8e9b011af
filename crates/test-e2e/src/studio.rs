//! Pictures and sounds for tests to refer to, made by FFmpeg in every format that is taken.

use std::process::Command;

/// A still that no other has, as a file of the format that `name` ends with. Soft
/// gradients of one dominant colour.
pub fn picture(name: &str, size: (u32, u32), colour: &str) -> Vec<u8> {
    let (width, height) = size;
    let source = format!(
        "gradients=s={width}x{height}:n=3:c0={colour}:c1={colour}:c2=white:seed=7:x0=0:y0=0:x1={width}:y1={height}:d=1:r=1"
    );
    lavfi(&source, &["-frames:v", "1"], name)
}

/// A photograph-like still: a part of the Mandelbrot set.
pub fn landscape(name: &str, size: (u32, u32)) -> Vec<u8> {
    let (width, height) = size;
    let source = format!("mandelbrot=s={width}x{height}:start_scale=0.9:maxiter=60,gblur=2");
    lavfi(&source, &["-frames:v", "1"], name)
}

/// A still of one grey, which is a small file however large it is.
pub fn flat(name: &str, size: (u32, u32)) -> Vec<u8> {
    let (width, height) = size;
    let source = format!("color=c=gray:s={width}x{height}:r=1,format=gray");
    lavfi(&source, &["-frames:v", "1"], name)
}

/// A tone of `hz` for `seconds`, as a file of the format that `name` ends with.
pub fn tone(name: &str, hz: u32, seconds: f64) -> Vec<u8> {
    let source = format!("sine=f={hz}:d={seconds}:r=44100");
    lavfi(&source, &["-ac", "2"], name)
}

/// A film of what FFmpeg's filters make of `source`, as a file of the format that `name` ends with; H.264 unless `options` say
/// otherwise.
pub fn film(name: &str, source: &str, options: &[&str]) -> Vec<u8> {
    let coding = ["-c:v", "libx264", "-pix_fmt", "yuv420p"];
    lavfi(source, &[&coding, options].concat(), name)
}

fn lavfi(source: &str, options: &[&str], name: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let output = Command::new("ffmpeg")
        .args(["-v", "error", "-f", "lavfi", "-i", source])
        .args(options)
        .arg(&path)
        .output()
        .unwrap_or_else(|error| panic!("ffmpeg is needed ({error}); ./test installs it"));
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {complaints}");
    std::fs::read(&path).unwrap()
}
