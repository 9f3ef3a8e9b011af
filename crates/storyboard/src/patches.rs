//! A coarse field of values over a frame, read smoothly between its places: where one picture
//! gives way to another. It knows no pictures.

/// Frame pixels per value, for a short side of 720.
const PITCH: f32 = 12.0;

/// Values over a frame.
#[derive(Debug)]
pub(crate) struct Patches {
    /// `[rows][columns]`
    values: Vec<f32>,
    columns: usize,
    rows: usize,
    width: usize,
    height: usize,
}

/// A place in a frame, in shares of its shorter side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub(crate) x: f32,
    pub(crate) y: f32,
}

impl Patches {
    pub(crate) fn new(width: usize, height: usize, value: impl Fn(Spot) -> f32) -> Self {
        let short = width.min(height) as f32;
        let pitch = (PITCH * short / 720.0).max(1.0);
        let count = |side: usize| (side as f32 / pitch).ceil() as usize + 1;
        let (columns, rows) = (count(width), count(height));
        let values = (0..columns * rows).map(|index| {
            let across = (index % columns) as f32 / (columns - 1) as f32;
            let down = (index / columns) as f32 / (rows - 1) as f32;
            value(Spot {
                x: across * width as f32 / short,
                y: down * height as f32 / short,
            })
        });
        Self {
            values: values.collect(),
            columns,
            rows,
            width,
            height,
        }
    }

    /// The values along row `y` of the frame.
    pub(crate) fn row(&self, y: usize) -> impl Iterator<Item = f32> + '_ {
        let down = y as f32 / self.height as f32 * (self.rows - 1) as f32;
        let upper = (down as usize).min(self.rows - 2);
        let part = down - upper as f32;
        let line = |row: usize| &self.values[row * self.columns..][..self.columns];
        let (a, b) = (line(upper), line(upper + 1));
        let step = (self.columns - 1) as f32 / self.width as f32;
        (0..self.width).map(move |x| {
            let across = x as f32 * step;
            let left = (across as usize).min(self.columns - 2);
            let side = across - left as f32;
            let at = |line: &[f32]| line[left] + (line[left + 1] - line[left]) * side;
            at(a) + (at(b) - at(a)) * part
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_between_their_places() {
        let field = Patches::new(320, 180, |place| place.x + 10.0 * place.y);
        for y in [0, 1, 90, 179] {
            let row: Vec<f32> = field.row(y).collect();
            assert_eq!(row.len(), 320);
            for (x, value) in row.into_iter().enumerate() {
                let wanted = x as f32 / 180.0 + 10.0 * y as f32 / 180.0;
                assert!((value - wanted).abs() < 1e-3, "{x} {y}: {value}");
            }
        }
    }
}
