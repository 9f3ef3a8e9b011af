//! Sizes for people, in powers of 1000 as publishers give them.

/// "2.8 GB", "254 MB", "12 kB", "7 bytes".
pub(super) fn size(bytes: u64) -> String {
    let scaled = |unit: u64| bytes as f64 / unit as f64;
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.0} kB", scaled(1_000)),
        1_000_000..1_000_000_000 => format!("{:.0} MB", scaled(1_000_000)),
        _ => format!("{:.1} GB", scaled(1_000_000_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_a_fitting_unit() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (12_300, "12 kB"),
            (253_815_318, "254 MB"),
            (2_838_303_560, "2.8 GB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
