//! Captions beside Pango's rendering of the same text with the same fonts: letters, joins, marks, order and spacing.
//! Without `pango-view` there is nothing to compare with; `KINORA_REQUIRE_PANGO` makes that a failure.

use std::fs::{self, File};
use std::io::BufReader;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use kinora_contract::Size;
use kinora_engine_storyboard::Storyboard;

use crate::captions::{black, over, shown};

const SIZE: Size = Size::new(1280, 720);
/// Height of a caption's em in frames of that size, pixels.
const EM: f64 = 720.0 * 0.044;
/// Most pixels by which both may lie apart after their boxes are laid upon each other.
const SHIFT_MAX: isize = 2;

const TEXTS: [(&str, &str); 10] = [
    ("Latin", "The quick brown fox AVATAR fi fl Việt Nam đẹp"),
    ("Greek and Cyrillic", "Ένα κόκκινο αερόστατο, Красный шар"),
    ("Arabic", "قطة سوداء تجلس على سطح المنزل تحت ضوء القمر"),
    ("Hebrew", "חתולה שחורה יושבת על הגג, שָׁלוֹם"),
    ("Devanagari", "क्षत्रिय लाल गुब्बारा हरी पहाड़ियों के ऊपर उठता है"),
    ("Thai", "บอลลูนสีแดงลอยขึ้นเหนือเนินเขาที่น้ำตื้น"),
    ("Hangul", "빨간 열기구가 푸른 언덕 위로 떠오른다"),
    ("Han and kana", "一只红色的热气球升起，赤い気球"),
    (
        "Arabic with Latin",
        "القطة Luna (3 سنوات) تنام في Studio 54 ليلا",
    ),
    (
        "Latin with Hebrew",
        "The word שלום means peace, (חתול 7) is a cat",
    ),
];

/// Grey levels of a picture, cut to what is not black: `[height][width]`.
struct Ink {
    width: usize,
    height: usize,
    grey: Vec<f64>,
}

impl Ink {
    fn new(width: usize, grey: &[f64]) -> Self {
        let is_ink = |level: &f64| *level > 40.0;
        let columns = || grey.iter().enumerate().filter(|(_, level)| is_ink(level));
        let xs: Vec<usize> = columns().map(|(at, _)| at % width).collect();
        let ys: Vec<usize> = columns().map(|(at, _)| at / width).collect();
        let (left, right) = (*xs.iter().min().unwrap(), *xs.iter().max().unwrap());
        let (top, bottom) = (*ys.iter().min().unwrap(), *ys.iter().max().unwrap());
        let rows = grey.chunks_exact(width).skip(top).take(bottom + 1 - top);
        Self {
            width: right + 1 - left,
            height: bottom + 1 - top,
            grey: rows
                .flat_map(|row| row[left..=right].iter().copied())
                .collect(),
        }
    }

    fn at(&self, x: isize, y: isize) -> f64 {
        let inside = (0..self.width.cast_signed()).contains(&x)
            && (0..self.height.cast_signed()).contains(&y);
        if inside {
            self.grey[y.cast_unsigned() * self.width + x.cast_unsigned()]
        } else {
            0.0
        }
    }

    /// The normalised correlation with `other`, at the best of a few shifts.
    fn likeness(&self, other: &Self) -> f64 {
        let shifts =
            (-SHIFT_MAX..=SHIFT_MAX).flat_map(|x| (-SHIFT_MAX..=SHIFT_MAX).map(move |y| (x, y)));
        let energy = |ink: &Self| ink.grey.iter().map(|level| level * level).sum::<f64>();
        let both = (energy(self) * energy(other)).sqrt();
        let product = |(across, down): (isize, isize)| {
            let places = (0..self.height.cast_signed())
                .flat_map(|y| (0..self.width.cast_signed()).map(move |x| (x, y)));
            places
                .map(|(x, y)| self.at(x, y) * other.at(x + across, y + down))
                .sum::<f64>()
        };
        shifts.map(product).fold(0.0, f64::max) / both
    }
}

/// The caption of a clip over a black picture, which leaves letters alone.
fn caption(text: &str) -> Ink {
    let (asked, materials) = over(vec![black(Size::new(64, 36))], text, SIZE);
    let frame = shown(&Storyboard::default(), &asked, &materials);
    let grey: Vec<f64> = frame.chunks_exact(3).map(|pixel| pixel[1].into()).collect();
    Ink::new(SIZE.width as usize, &grey)
}

/// What `pango-view` makes of `text` with the fonts of this crate alone.
fn reference(text: &str, folder: &Path) -> Ink {
    let out = folder.join("out.png");
    let status = Command::new("pango-view")
        .env("FONTCONFIG_FILE", folder.join("fonts.conf"))
        .args([
            "--no-display",
            "--pixels",
            "--hinting=none",
            "--antialias=gray",
        ])
        .args(["--hint-metrics=off", "--subpixel-positions", "--margin=20"])
        .args(["--background=black", "--foreground=white"])
        .arg(format!("--font=Noto Sans Medium {EM}"))
        .args(["--text", text, "--output"])
        .arg(&out)
        .status();
    assert!(status.unwrap().success());
    let mut reader = png::Decoder::new(BufReader::new(File::open(out).unwrap()))
        .read_info()
        .unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    let samples = info.color_type.samples();
    let pixels = bytes[..info.buffer_size()].chunks_exact(samples);
    let grey: Vec<f64> = pixels.map(|pixel| pixel[0].into()).collect();
    Ink::new(info.width as usize, &grey)
}

/// A folder with links to the fonts and a configuration that knows no others; removed at the end.
struct Fonts(std::path::PathBuf);

impl Fonts {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("kinora-pango-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("fonts")).unwrap() {
            let path = entry.unwrap().path();
            let is_font = path
                .extension()
                .is_some_and(|one| one == "ttf" || one == "otf");
            if is_font {
                symlink(&path, folder.join(path.file_name().unwrap())).unwrap();
            }
        }
        let place = folder.display();
        let conf = format!(
            "<fontconfig><dir>{place}</dir><cachedir>{place}/cache</cachedir></fontconfig>"
        );
        fs::write(folder.join("fonts.conf"), conf).unwrap();
        Self(folder)
    }
}

impl Drop for Fonts {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn captions_look_as_pango_sets_them() {
    if Command::new("pango-view")
        .arg("--version")
        .output()
        .is_err()
    {
        let required = std::env::var_os("KINORA_REQUIRE_PANGO").is_some();
        assert!(!required, "pango-view is missing (Debian: pango1.0-tools)");
        println!("skipped: pango-view is missing (Debian: pango1.0-tools)");
        return;
    }
    let fonts = Fonts::new();
    for (name, text) in TEXTS {
        let (ours, theirs) = (caption(text), reference(text, &fonts.0));
        let likeness = ours.likeness(&theirs);
        println!(
            "{name}: {likeness:.4}, {}x{} and {}x{}",
            ours.width, ours.height, theirs.width, theirs.height
        );
        assert!(
            ours.width.abs_diff(theirs.width) <= 3,
            "{name}: {} and {}",
            ours.width,
            theirs.width
        );
        assert!(likeness > 0.9, "{name}: {likeness:.3}");
    }
    // The measure tells joined letters from the same letters apart, and one order from another.
    let apart = reference("قطة س‌و‌د‌ا‌ء ت‌ج‌ل‌س ع‌ل‌ى س‌ط‌ح ا‌ل‌م‌ن‌ز‌ل ت‌ح‌ت ض‌و‌ء ا‌ل‌ق‌م‌ر", &fonts.0);
    assert!(caption(TEXTS[2].1).likeness(&apart) < 0.7);
    let turned = reference("The word םולש means peace, (לותח 7) is a cat", &fonts.0);
    assert!(caption(TEXTS[9].1).likeness(&turned) < 0.9);
}
