//! The smallest H.264 level that a picture size and rate fit in.
//! Source: Rec. ITU-T H.264 (08/2021), table A-1, columns MaxMBPS and MaxFS. Ignores bit rate:
//! the recorder's ceiling on bits per pixel stays below MaxBR of every level chosen here.

/// (level times ten, macroblocks per second, macroblocks per picture).
const LEVELS: [(u8, u32, u32); 14] = [
    (10, 1_485, 99),
    (11, 3_000, 396),
    (12, 6_000, 396),
    (20, 11_880, 396),
    (21, 19_800, 792),
    (22, 20_250, 1_620),
    (30, 40_500, 1_620),
    (31, 108_000, 3_600),
    (32, 216_000, 5_120),
    (40, 245_760, 8_192),
    (42, 522_240, 8_704),
    (50, 589_824, 22_080),
    (51, 983_040, 36_864),
    (52, 2_073_600, 36_864),
];

/// The level's number times ten, or `None` beyond level 5.2.
pub(crate) fn level_idc(width: u32, height: u32, fps: u32) -> Option<u8> {
    let (columns, rows) = (width.div_ceil(16), height.div_ceil(16));
    let picture = columns * rows;
    LEVELS
        .iter()
        .find(|(_, per_second, per_picture)| {
            let side_max_squared = per_picture * 8;
            picture <= *per_picture
                && picture.saturating_mul(fps) <= *per_second
                && columns * columns <= side_max_squared
                && rows * rows <= side_max_squared
        })
        .map(|(idc, ..)| *idc)
}

#[cfg(test)]
mod tests {
    use super::level_idc;

    #[test]
    fn usual_sizes_get_their_usual_levels() {
        assert_eq!(level_idc(854, 480, 24), Some(30));
        assert_eq!(level_idc(1280, 720, 30), Some(31));
        assert_eq!(level_idc(1920, 1080, 24), Some(40));
        assert_eq!(level_idc(1920, 1080, 60), Some(42));
        assert_eq!(level_idc(2520, 1080, 24), Some(50));
        assert_eq!(level_idc(4096, 2304, 30), Some(52));
        assert_eq!(level_idc(4096, 4096, 24), None);
        assert_eq!(level_idc(4096, 2304, 240), None);
    }
}
