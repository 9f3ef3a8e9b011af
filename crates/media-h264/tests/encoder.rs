//! The wrapper's promises: closed runs, equal parameter sets, refusals instead of bad reads.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail the test")]

use kinora_media_h264::{EncoderConfig, H264Encoder, H264Error, I420Planes, assembly, variant};

const CONFIG: EncoderConfig = EncoderConfig {
    width: 64,
    height: 48,
    fps: 24,
    qp: 26,
};

/// Luma and one chroma plane of a moving ramp.
fn planes(index: usize) -> (Vec<u8>, Vec<u8>) {
    let luma = (0..64 * 48).map(|i| (i + 5 * index) as u8).collect();
    let chroma = (0..32 * 24).map(|i| (100 + i / 32 + index) as u8).collect();
    (luma, chroma)
}

fn encode(encoder: &mut H264Encoder, index: usize) -> kinora_media_h264::EncodedFrame {
    let (y, c) = planes(index);
    encoder
        .encode(I420Planes {
            y: &y,
            u: &c,
            v: &c,
            y_stride: 64,
            chroma_stride: 32,
        })
        .unwrap()
}

/// The `nal_unit_type`s of an MP4 sample, by its length prefixes.
fn nal_types(mut sample: &[u8]) -> Vec<u8> {
    let mut types = Vec::new();
    while let Some((length, rest)) = sample.split_first_chunk::<4>() {
        types.push(rest[0] & 0x1f);
        sample = &rest[u32::from_be_bytes(*length) as usize..];
    }
    assert!(sample.is_empty());
    types
}

#[test]
fn only_the_first_picture_is_an_idr_and_samples_hold_one_slice() {
    let mut encoder = H264Encoder::new(&CONFIG).unwrap();
    for index in 0..300 {
        let frame = encode(&mut encoder, index);
        assert_eq!(frame.is_idr, index == 0);
        assert_eq!(nal_types(&frame.data), [if index == 0 { 5 } else { 1 }]);
    }
}

#[test]
fn parameter_sets_do_not_depend_on_the_quantiser() {
    let sets = [10, 26, 51].map(|qp| {
        let mut encoder = H264Encoder::new(&EncoderConfig { qp, ..CONFIG }).unwrap();
        let before = encoder.parameter_sets().clone();
        encode(&mut encoder, 0);
        assert_eq!(encoder.parameter_sets(), &before);
        before
    });
    assert!(sets[0] == sets[1] && sets[1] == sets[2]);
    // NAL types 7 and 8, High profile, level 1.0 for a picture this small.
    assert_eq!(sets[0].sps[0] & 0x1f, 7);
    assert_eq!((sets[0].sps[1], sets[0].sps[3]), (100, 10));
    assert_eq!(sets[0].pps[0] & 0x1f, 8);
}

#[test]
fn equal_pictures_give_equal_bytes_on_every_thread() {
    let run = || {
        let mut encoder = H264Encoder::new(&CONFIG).unwrap();
        (0..20)
            .map(|index| encode(&mut encoder, index))
            .collect::<Vec<_>>()
    };
    let threads = [(); 4].map(|()| std::thread::spawn(run));
    let expected = run();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), expected);
    }
}

#[test]
fn short_planes_are_refused() {
    let mut encoder = H264Encoder::new(&CONFIG).unwrap();
    let (y, c) = planes(0);
    let good = I420Planes {
        y: &y,
        u: &c,
        v: &c,
        y_stride: 64,
        chroma_stride: 32,
    };
    let wrong = [
        I420Planes { y: &y[1..], ..good },
        I420Planes { u: &c[1..], ..good },
        I420Planes { v: &[], ..good },
        I420Planes {
            y_stride: 63,
            ..good
        },
        I420Planes {
            y_stride: usize::MAX,
            ..good
        },
        I420Planes {
            chroma_stride: 33,
            ..good
        },
    ];
    for planes in wrong {
        assert!(matches!(
            encoder.encode(planes),
            Err(H264Error::PlaneLength)
        ));
    }
    assert!(encoder.encode(good).unwrap().is_idr);
}

#[test]
fn unusable_configurations_are_refused() {
    for config in [
        EncoderConfig {
            width: 63,
            ..CONFIG
        },
        EncoderConfig {
            height: 14,
            ..CONFIG
        },
        EncoderConfig {
            width: 4098,
            ..CONFIG
        },
        EncoderConfig {
            width: 4096,
            height: 4096,
            ..CONFIG
        },
        EncoderConfig { fps: 0, ..CONFIG },
        EncoderConfig { qp: 52, ..CONFIG },
    ] {
        assert!(
            matches!(H264Encoder::new(&config), Err(H264Error::Unsupported(_))),
            "{config:?}"
        );
    }
}

#[test]
fn the_variant_says_what_is_linked() {
    assert_eq!(variant().contains("without"), !assembly());
}
