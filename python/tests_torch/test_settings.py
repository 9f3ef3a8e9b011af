"""Settings of the diffusers engine: types, quantisers, single files, attention, decoders, LoRAs."""

import importlib.util
import shutil
import unittest
from pathlib import Path
from typing import Any

import diffusers
import torch
from support import Tiny, tiny

from kinora_engine.diffusers._load import load_pipeline
from kinora_engine.diffusers._objects import made
from kinora_engine.diffusers._settings import Settings
from kinora_engine.diffusers._weights import quantization
from kinora_engine.testing import OpenFailed, job


def has(package: str) -> bool:
    """Whether a package is installed."""
    return importlib.util.find_spec(package) is not None


def difference(one: list[bytes], two: list[bytes]) -> int:
    """The largest difference of two clips, of 255."""
    return max(abs(a - b) for a, b in zip(b"".join(one), b"".join(two), strict=True))


class Wan(Tiny, unittest.TestCase):
    build = staticmethod(tiny.wan)

    def parsed(self, **settings: Any) -> Settings:
        return Settings.parse({"model": self.folder.name, "dtype": "float32", "torch_device": "cpu", **settings})

    def test_each_part_has_the_type_that_the_settings_name(self) -> None:
        half, full = torch.bfloat16, torch.float32
        for said, expected in (
            ("bfloat16", (half, half, half)),
            ({"vae": "float32"}, (half, half, full)),
            ({"default": "float32", "transformer": "bfloat16"}, (half, full, full)),
        ):
            pipe = load_pipeline(self.parsed(dtype=said))
            self.assertEqual((pipe.transformer.dtype, pipe.text_encoder.dtype, pipe.vae.dtype), expected)

    def test_a_clip_is_made_with_a_decoder_of_another_type(self) -> None:
        mixed = self.host(dtype={"vae": "float32"}).run(job())
        self.assertEqual((mixed.outcome, mixed.message), ("done", ""))
        self.assertTrue(self.host(dtype="bfloat16").run(job()).frames != mixed.frames)

    def test_a_type_or_a_part_that_does_not_exist_is_named(self) -> None:
        for said, message in (("bf16", "'bf16' is not a type of torch"), ({"vea": "float32"}, "names vea"), ({"vae": 32}, "settings.dtype")):
            with self.assertRaisesRegex(OpenFailed, message):
                self.host(dtype=said)

    def test_the_native_attention_gives_the_frames_of_the_default(self) -> None:
        expected = self.host().run(job()).frames
        self.assertTrue(self.host(attention="native").run(job()).frames == expected)
        with self.assertRaisesRegex(OpenFailed, "must be one of"):
            self.host(attention="nativ")

    def test_a_tiled_or_sliced_decoder_gives_whole_frames(self) -> None:
        # Larger than a tile, which has 256 pixels.
        request = job(width=288, height=32, frames=5)
        expected = self.host().run(request).frames
        pipe = load_pipeline(self.parsed(vae_tiling=True, vae_slicing=True))
        self.assertEqual((pipe.vae.use_tiling, pipe.vae.use_slicing), (True, True))
        self.assertTrue(self.host(vae_slicing=True).run(request).frames == expected)
        tiled = self.host(vae_tiling=True).run(request)
        self.assertEqual((tiled.outcome, [len(frame) for frame in tiled.frames]), ("done", [288 * 32 * 3] * 5))
        self.assertTrue(tiled.frames != expected, "no tiles")

    def test_offloaded_parts_give_the_frames_of_others_also_after_a_cancel(self) -> None:
        """From the CPU to the CPU. `sequential` fails there in accelerate, with a plain script too."""
        expected = self.host(steps=20).run(job()).frames
        for offload, options in (("model", {}), ("group", {"offload_type": "leaf_level"})):
            host = self.host(steps=20, offload=offload, offload_options=options)
            running = host.start(job(width=128, height=128, frames=33))
            running.wait_until(lambda result: any(fraction > 0 for fraction in result.progress))
            running.cancel()
            self.assertEqual(running.result.outcome, "cancelled")
            result = host.run(job())
            self.assertEqual((result.outcome, result.message), ("done", ""))
            self.assertLessEqual(difference(result.frames, expected), 1)
            host.close()

    @unittest.skipUnless(shutil.which("c++") or shutil.which("g++"), "no C++ compiler")
    def test_compiled_blocks_give_the_frames_of_others_and_are_a_phase_of_the_first_job(self) -> None:
        host = self.host(compile=True)
        first, second = host.run(job()), host.run(job())
        self.assertEqual((first.outcome, first.message), ("done", ""))
        self.assertEqual(([phase["name"] for phase in first.phases], second.phases), (["compiling"], []))
        self.assertTrue(first.frames == second.frames)
        self.assertLessEqual(difference(first.frames, self.host().run(job()).frames), 1)

    @unittest.skipUnless(has("gguf"), "gguf is not installed")
    def test_a_transformer_from_a_gguf_file(self) -> None:
        import gguf

        file = Path(self.folder.name) / "transformer.gguf"
        part = diffusers.WanTransformer3DModel.from_pretrained(self.folder.name, subfolder="transformer")
        writer = gguf.GGUFWriter(file, "wan")
        for name, value in part.state_dict().items():
            # The published files have these two names the other way round.
            name = name.replace("norm2", "norm?").replace("norm3", "norm2").replace("norm?", "norm3")
            array = (value * 2 if name.startswith("proj_out") else value).numpy()
            kind = gguf.GGMLQuantizationType.Q8_0 if name.endswith("ffn.net.2.weight") else gguf.GGMLQuantizationType.F32
            writer.add_tensor(name, gguf.quantize(array, kind), raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        result = self.host(single_files={"transformer": str(file)}).run(job())
        self.assertEqual((result.outcome, result.message), ("done", ""))
        self.assertTrue(result.frames != self.host().run(job()).frames, "the file was not used")
        loaded = load_pipeline(self.parsed(single_files={"transformer": str(file)})).transformer
        self.assertEqual(type(loaded.blocks[1].ffn.net[2].weight).__name__, "GGUFParameter")
        self.assertTrue(torch.equal(loaded.proj_out.weight, part.proj_out.weight * 2))

    @unittest.skipUnless(has("torchao"), "torchao is not installed")
    def test_a_transformer_in_8_bits_by_torchao(self) -> None:
        weights = {"type": "TorchAoConfig", "quant_type": {"type": "torchao.quantization.Int8WeightOnlyConfig"}}
        result = self.host(quantization={"quant_mapping": {"transformer": weights}}).run(job())
        self.assertEqual((result.outcome, result.message), ("done", ""))
        self.assertTrue(result.frames != self.host().run(job()).frames, "nothing was quantised")

    def test_a_part_without_a_single_file_form_is_refused(self) -> None:
        for name in ("tokenizer", "nothing"):
            with self.assertRaisesRegex(OpenFailed, f"has no {name} that diffusers reads from a single file"):
                self.host(single_files={name: "/nowhere.gguf"})

    def test_a_lora_changes_the_frames_as_much_as_its_scale_says(self) -> None:
        from safetensors.torch import save_file

        torch.manual_seed(1)
        file = Path(self.folder.name) / "style.safetensors"
        weights = {}
        for block in range(2):
            for layer in ("to_q", "to_v"):
                name = f"transformer.blocks.{block}.attn1.{layer}"
                weights[f"{name}.lora_A.weight"] = torch.randn(4, 24)
                weights[f"{name}.lora_B.weight"] = torch.randn(24, 4)
        save_file(weights, file)
        lora = {"name": "style", "path": str(file)}
        if not has("peft"):
            with self.assertRaisesRegex(OpenFailed, "PEFT"):
                self.host(loras=[lora])
            return
        without = self.host().run(job()).frames
        self.assertTrue(self.host(loras=[{**lora, "scale": 0.0}]).run(job()).frames == without)
        half, whole = (self.host(loras=[{**lora, "scale": scale}]).run(job()) for scale in (0.5, 1.0))
        self.assertEqual((half.outcome, whole.outcome, whole.message), ("done", "done", ""))
        self.assertEqual(len({b"".join(frames) for frames in (without, half.frames, whole.frames)}), 3)


class TwoExperts(Tiny, unittest.TestCase):
    """As the ready-made configurations of Lightning: a LoRA for each expert, few steps, no guidance."""

    build = staticmethod(tiny.wan_a14b)

    @unittest.skipUnless(has("peft"), "peft is not installed")
    def test_each_expert_has_its_own_lora(self) -> None:
        from safetensors.torch import save_file

        torch.manual_seed(1)
        loras = []
        for expert in ("high", "low"):
            # As the publishers name them, with the strength beside the weights.
            name = "diffusion_model.blocks.0.self_attn.q"
            down, up = torch.randn(4, 24), torch.randn(24, 4)
            file = Path(self.folder.name) / expert / "model.safetensors"
            file.parent.mkdir(exist_ok=True)
            save_file({f"{name}.lora_down.weight": down, f"{name}.lora_up.weight": up, f"{name}.alpha": torch.tensor(8.0)}, file)
            lora = {"name": expert, "path": self.folder.name, "weight_name": f"{expert}/model.safetensors"}
            loras.append(lora if expert == "high" else {**lora, "load_into_transformer_2": True})
        settings = Settings.parse({"model": self.folder.name, "dtype": "float32", "torch_device": "cpu", "loras": loras})
        pipe = load_pipeline(settings)
        for expert, part in (("high", pipe.transformer), ("low", pipe.transformer_2)):
            layer = part.blocks[0].attn1.to_q
            self.assertEqual((list(layer.lora_A), layer.scaling), ([expert], {expert: 1.0}))
        arguments = {"guidance_scale": 1.0, "guidance_scale_2": 1.0}
        clips = [self.host(steps=4, loras=some, arguments=arguments).run(job()).frames for some in ([], loras[:1], loras[1:], loras)]
        self.assertEqual(len({b"".join(frames) for frames in clips}), 4)

    def test_unipc_of_order_1_takes_the_steps_of_euler_at_the_times_of_lightning(self) -> None:
        changes = {"flow_shift": 5.0, "solver_order": 1, "disable_corrector": [0, 1, 2, 3]}
        scheduler = diffusers.UniPCMultistepScheduler(prediction_type="flow_prediction", use_flow_sigmas=True)
        scheduler = type(scheduler).from_config(scheduler.config, **changes)
        scheduler.set_timesteps(4)
        for time, trained in zip(scheduler.timesteps.tolist(), (1000.0, 937.5, 833.3, 625.0), strict=True):
            self.assertLess(abs(time - trained), 1.5)
        sample = expected = torch.ones(4)
        for index, time in enumerate(scheduler.timesteps):
            speed = torch.full((4,), index + 2.0)
            expected = expected + (scheduler.sigmas[index + 1] - scheduler.sigmas[index]) * speed
            sample = scheduler.step(speed, time, sample).prev_sample
        self.assertTrue(torch.allclose(sample, expected, atol=1e-3), f"{sample} is not {expected}")


class Quantization(unittest.TestCase):
    """Only the configuration is made here."""

    def config(self, **settings: Any) -> Any:
        return quantization(Settings.parse({"model": "here", "quantization": settings}))

    def resolved(self, config: Any, name: str = "transformer") -> Any:
        """What diffusers gives to a part."""
        return config._resolve_quant_config(is_diffusers=True, module_name=name)

    def test_a_mapping_has_objects_for_its_parts(self) -> None:
        quanto = {"type": "QuantoConfig", "weights_dtype": "int8", "modules_to_not_convert": ["proj_out"]}
        gguf = {"type": "GGUFQuantizationConfig", "compute_dtype": "bfloat16"}
        config = self.config(quant_mapping={"transformer": quanto, "transformer_2": gguf})
        made_quanto, made_gguf = self.resolved(config), self.resolved(config, "transformer_2")
        self.assertIsInstance(made_quanto, diffusers.QuantoConfig)
        # Here the name stays a name.
        self.assertEqual((made_quanto.weights_dtype, made_quanto.modules_to_not_convert), ("int8", ["proj_out"]))
        self.assertEqual(made_gguf.compute_dtype, torch.bfloat16)
        self.assertIsNone(self.resolved(config, "vae"))

    def test_bitsandbytes_takes_a_backend_with_plain_arguments(self) -> None:
        arguments = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_compute_dtype": "bfloat16"}
        config = self.config(quant_backend="bitsandbytes_4bit", quant_kwargs=arguments, components_to_quantize=["transformer"])
        self.assertEqual(config.quant_kwargs, arguments)
        if not has("bitsandbytes"):
            with self.assertRaisesRegex(Exception, "bitsandbytes"):
                self.resolved(config)
            return
        self.assertEqual(self.resolved(config).bnb_4bit_compute_dtype, torch.bfloat16)

    def test_torchao_takes_an_object(self) -> None:
        name = "torchao.quantization.Float8WeightOnlyConfig"
        quant_type = {"type": name, "weight_dtype": "float8_e4m3fn"}
        mapping = {"transformer": {"type": "TorchAoConfig", "quant_type": quant_type}}
        if not has("torchao"):
            with self.assertRaisesRegex(ValueError, f"settings.quantization: {name} needs a package that is not installed: .*torchao"):
                self.config(quant_mapping=mapping)
            return
        made_torchao = self.resolved(self.config(quant_mapping=mapping))
        self.assertEqual(type(made_torchao.quant_type).__name__, "Float8WeightOnlyConfig")
        self.assertEqual(made_torchao.quant_type.weight_dtype, torch.float8_e4m3fn)

    def test_what_cannot_be_made_is_named(self) -> None:
        for table, message in (
            ({"quant_mapping": {"transformer": {"type": "NoConfig"}}}, "there is no class NoConfig"),
            ({"quant_mapping": {"transformer": {"type": "QuantoConfig", "weights_dtype": "int7"}}}, "QuantoConfig: .*int8"),
            ({"quant_mapping": {"transformer": {"type": "GGUFQuantizationConfig", "dtype": "x"}}}, "GGUFQuantizationConfig: .*dtype"),
            ({"quant_backend": "none_such", "quant_kwargs": {"a": 1}}, "none_such was not found"),
        ):
            with self.assertRaisesRegex(ValueError, f"settings.quantization: .*{message}"):
                self.config(**table)

    def test_tables_without_a_type_stay_tables(self) -> None:
        self.assertEqual(made({"a": [{"b": 1}], "weights_dtype": "int8"}), {"a": [{"b": 1}], "weights_dtype": "int8"})


class Hub(unittest.TestCase):
    def test_attention_of_the_hub_is_told_by_its_name(self) -> None:
        from diffusers.models.attention_dispatch import _HUB_KERNELS_REGISTRY

        self.assertTrue(_HUB_KERNELS_REGISTRY)
        self.assertTrue(all(kernel.value.endswith("_hub") for kernel in _HUB_KERNELS_REGISTRY))


if __name__ == "__main__":
    unittest.main()
