//! The tensors of a file, gathered module by module: weights and biases by the names that PyTorch
//! gives them.

use super::tensor::{Kind, Tensor};

pub(crate) struct Writer {
    kind: Kind,
    pub tensors: Vec<Tensor>,
}

impl Writer {
    /// Large matrices are of `kind`, kernels of convolutions `f16`, all else `f32`.
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            tensors: Vec::new(),
        }
    }

    /// `nn.Linear` without a bias.
    pub(crate) fn matrix(&mut self, name: &str, outputs: u64, inputs: u64) {
        let weight = Tensor::weight(format!("{name}.weight"), &[outputs, inputs], self.kind);
        self.tensors.push(weight);
    }

    /// `nn.Linear`.
    pub(crate) fn linear(&mut self, name: &str, outputs: u64, inputs: u64) {
        self.matrix(name, outputs, inputs);
        self.bias(&format!("{name}.bias"), &[outputs]);
    }

    /// `nn.Conv1d` to `nn.Conv3d`, by how many sides `kernel` has, without a bias.
    pub(crate) fn kernel(&mut self, name: &str, outputs: u64, inputs: u64, kernel: &[u64]) {
        let shape = [&[outputs, inputs], kernel].concat();
        let weight = Tensor::weight(format!("{name}.weight"), &shape, Kind::F16);
        self.tensors.push(weight);
    }

    /// The same with a bias.
    pub(crate) fn conv(&mut self, name: &str, outputs: u64, inputs: u64, kernel: &[u64]) {
        self.kernel(name, outputs, inputs, kernel);
        self.bias(&format!("{name}.bias"), &[outputs]);
    }

    /// `nn.LayerNorm`.
    pub(crate) fn layer_norm(&mut self, name: &str, width: u64) {
        self.scale(&format!("{name}.weight"), &[width]);
        self.bias(&format!("{name}.bias"), &[width]);
    }

    /// Numbers around 0.0, under a whole name.
    pub(crate) fn bias(&mut self, name: &str, shape: &[u64]) {
        self.tensors.push(Tensor::bias(name, shape));
    }

    /// Numbers around 1.0, under a whole name.
    pub(crate) fn scale(&mut self, name: &str, shape: &[u64]) {
        self.tensors.push(Tensor::scale(name, shape));
    }
}
