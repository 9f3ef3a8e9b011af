//! Honest images come out as they were put in: every type, depth and orientation.

use jpeg_encoder::ColorType;
use kinora_media_decode::DecodedImage;

use crate::pictures::{Picture, gif};
use crate::samples::{
    exif, image, image_size, jpeg, jpeg_with_exif, picture, png_with_chunk, with_file,
};

/// Largest and mean difference of samples.
fn difference(image: &DecodedImage, expected: &Picture<3>) -> (u8, f64) {
    assert_eq!(
        (image.width, image.height),
        (expected.width, expected.height)
    );
    assert_eq!(image.rgb.len(), expected.bytes().len());
    let pairs = image.rgb.iter().zip(expected.bytes());
    let differences: Vec<u8> = pairs.map(|(one, other)| one.abs_diff(*other)).collect();
    let sum: f64 = differences.iter().map(|&one| f64::from(one)).sum();
    let most = differences.iter().copied().max().unwrap();
    (most, sum / differences.len() as f64)
}

#[test]
fn lossless_types_and_depths_are_exact() {
    let rgb = picture(301, 257);
    let rgba = rgb.map(|[red, green, blue]| [red, green, blue, 255]);
    let luma = rgb.map(|[_, green, _]| [green]);
    let grey = luma.map(|[value]| [value; 3]);
    for (name, file, expected) in [
        ("png", rgb.png(), &rgb),
        ("png 16 bits", rgb.png_of_16_bits(), &rgb),
        ("png rgba 16 bits", rgba.png_of_16_bits(), &rgb),
        ("png grey", luma.png(), &grey),
        ("png grey 16 bits", luma.png_of_16_bits(), &grey),
        ("webp", rgb.webp(), &rgb),
        ("webp rgba", rgba.webp(), &rgb),
    ] {
        let decoded = image(&file).unwrap();
        assert_eq!(difference(&decoded, expected), (0, 0.0), "{name}");
        assert_eq!(image_size(&file).unwrap(), (301, 257), "{name}");
    }
}

#[test]
fn a_palette_of_four_bits_is_read() {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, 256, 300);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Four);
    encoder.set_palette([255, 0, 0, 0, 0, 255, 9, 9, 9].as_slice());
    encoder.set_trns([255, 255, 0].as_slice());
    let mut writer = encoder.write_header().unwrap();
    // Rows of 128 bytes; the pixels are red, blue, transparent, red.
    writer
        .write_image_data(&[0x01, 0x20].repeat(64 * 300))
        .unwrap();
    writer.finish().unwrap();
    let decoded = image(&file).unwrap();
    assert_eq!(
        decoded.rgb[..12],
        [255, 0, 0, 0, 0, 255, 255, 255, 255, 255, 0, 0]
    );
}

#[test]
fn jpeg_of_every_kind_is_near_the_original() {
    let original = picture(333, 280);
    let grey = original.map(|[red, _, _]| [red; 3]);
    for color in [ColorType::Rgb, ColorType::Luma, ColorType::Cmyk] {
        for progressive in [false, true] {
            let decoded = image(&jpeg(&original, color, progressive)).unwrap();
            let expected = if color == ColorType::Luma {
                &grey
            } else {
                &original
            };
            let (most, mean) = difference(&decoded, expected);
            assert!(
                most <= 24 && mean < 2.5,
                "{color:?} {progressive}: {most} {mean}"
            );
        }
    }
}

#[test]
fn the_first_frame_of_what_moves_is_read() {
    let first = Picture::filled(300, 260, [200, 30, 30, 255]);
    let second = Picture::filled(300, 260, [30, 30, 200, 255]);
    let gif = gif(&[first, second]);
    let source = "color=c=red:s=300x260:d=1:r=2,format=rgba,hue=h=90*n";
    let webp = crate::samples::ffmpeg(source, "-c:v libwebp_anim -lossless 1 -f webp");
    let apng = crate::samples::ffmpeg(source, "-f apng -plays 0");
    for (name, file) in [("gif", gif), ("webp", webp), ("apng", apng)] {
        let decoded = image(&file).unwrap();
        assert_eq!((decoded.width, decoded.height), (300, 260), "{name}");
        let [red, green, blue] = decoded.rgb[..3] else {
            unreachable!()
        };
        assert!(
            red > 180 && green < 60 && blue < 60,
            "{name}: {red} {green} {blue}"
        );
    }
}

/// The first frame may lie anywhere on the canvas of a GIF, also beyond its edges.
#[test]
fn a_frame_of_a_gif_lies_at_its_place_on_the_canvas() {
    for (left, top, width, height) in [
        (40, 50, 100, 60),
        (0, 50, 300, 60),
        (0, 50, 300, 400),
        (250, 50, 100, 60),
        (250, 230, 400, 400),
        (0, 0, 40, 30),
    ] {
        let palette = [0, 0, 0, 255, 0, 0];
        let mut file = Vec::new();
        let mut encoder = gif::Encoder::new(&mut file, 300, 260, &palette).unwrap();
        let frame = gif::Frame {
            left,
            top,
            width,
            height,
            buffer: vec![1; usize::from(width) * usize::from(height)].into(),
            ..gif::Frame::default()
        };
        encoder.write_frame(&frame).unwrap();
        drop(encoder);
        let (left, top) = (u32::from(left), u32::from(top));
        let (right, bottom) = (left + u32::from(width), top + u32::from(height));
        let expected = Picture::from_fn(300, 260, |x, y| {
            if (left..right).contains(&x) && (top..bottom).contains(&y) {
                [255, 0, 0]
            } else {
                [255; 3]
            }
        });
        let decoded = image(&file).unwrap();
        assert_eq!(
            difference(&decoded, &expected),
            (0, 0.0),
            "at {left}, {top}"
        );
    }
}

#[test]
fn transparent_parts_lie_over_white() {
    let clear = Picture::from_fn(256, 256, |x, _| [255, 0, 0, x as u8]);
    for (name, file) in [("png", clear.png()), ("webp", clear.webp())] {
        let decoded = image(&file).unwrap();
        let row: Vec<&[u8]> = decoded.rgb[..256 * 3].chunks(3).collect();
        for (alpha, pixel) in row.iter().enumerate() {
            let faded = 255 - alpha as u8;
            assert_eq!(pixel, &[255, faded, faded], "{name}");
        }
    }
    let clear = Picture::filled(256, 256, [0, 51]);
    let decoded = image(&clear.png()).unwrap();
    assert!(decoded.rgb.iter().all(|&value| value == 204));
}

/// The image as a camera that was turned would store it, from the meaning of the values: which
/// side of the scene the first row and the first column show (EXIF 2.3, tag 0x0112).
fn stored(upright: &Picture<3>, orientation: u8) -> Picture<3> {
    let (width, height) = (upright.width, upright.height);
    let from_right = matches!(orientation, 2 | 3 | 6 | 7);
    let from_bottom = matches!(orientation, 3 | 4 | 7 | 8);
    let at = |along: u32, down: u32| {
        let x = if from_right { width - 1 - along } else { along };
        let y = if from_bottom { height - 1 - down } else { down };
        upright.at(x, y)
    };
    if orientation < 5 {
        Picture::from_fn(width, height, at)
    } else {
        Picture::from_fn(height, width, |column, row| at(row, column))
    }
}

#[test]
fn all_orientations_come_out_upright() {
    let upright = picture(410, 290);
    for orientation in 1..=8 {
        let turned = stored(&upright, orientation);
        for big_endian in [false, true] {
            let exif = exif(orientation, big_endian);
            let file = png_with_chunk(&turned.png(), b"eXIf", &exif);
            assert_eq!(image_size(&file).unwrap(), (410, 290));
            assert_eq!(
                difference(&image(&file).unwrap(), &upright),
                (0, 0.0),
                "{orientation}"
            );
            let file = jpeg_with_exif(&jpeg(&turned, ColorType::Rgb, false), &exif);
            assert_eq!(image_size(&file).unwrap(), (410, 290));
            let (most, mean) = difference(&image(&file).unwrap(), &upright);
            assert!(most <= 24 && mean < 2.5, "{orientation}: {most} {mean}");
        }
    }
}

#[test]
fn a_large_image_is_shrunk_to_cover_what_is_asked_for() {
    let upright = picture(1_200, 800);
    let file = stored(&upright, 6).png();
    let file = png_with_chunk(&file, b"eXIf", &exif(6, false));
    for (cover, expected) in [
        ((300, 100), (300, 200)),
        ((100, 200), (300, 200)),
        ((1_199, 100), (1_199, 800)),
        ((5_000, 5_000), (1_200, 800)),
    ] {
        let decoded = with_file(&file, |path| kinora_media_decode::image(path, cover)).unwrap();
        assert_eq!((decoded.width, decoded.height), expected, "{cover:?}");
        let (most, mean) = difference(&decoded, &picture(expected.0, expected.1));
        assert!(most <= 8 && mean < 2.0, "{cover:?}: {most} {mean}");
    }
}

#[test]
fn lossless_webp_with_every_trick_of_its_encoder_is_exact() {
    for (filter, size) in [
        ("testsrc2=s=1200x800", (1_200, 800)),
        ("mandelbrot=s=800x600:maxiter=200", (800, 600)),
        ("pal75bars=s=400x300", (400, 300)),
        ("cellauto=s=320x300:rule=110:random_seed=7", (320, 300)),
        (
            "testsrc=s=640x480,format=rgba,colorchannelmixer=aa=0.5",
            (640, 480),
        ),
    ] {
        let frame = "-frames:v 1 -pix_fmt bgra";
        let lossless =
            format!("{frame} -c:v libwebp -lossless 1 -compression_level 6 -q:v 100 -f webp");
        let lossless = image(&crate::samples::ffmpeg(filter, &lossless)).unwrap();
        let png = image(&crate::samples::ffmpeg(
            filter,
            "-frames:v 1 -pix_fmt rgba -c:v png -f image2pipe",
        ));
        assert_eq!((lossless.width, lossless.height), size, "{filter}");
        assert!(lossless.rgb == png.unwrap().rgb, "{filter}");
        let lossy = format!("{frame} -c:v libwebp -q:v 60 -f webp");
        assert!(
            image(&crate::samples::ffmpeg(filter, &lossy)).is_ok(),
            "{filter}"
        );
    }
}
