"""The JSON Schema of a job takes the golden jobs, and refuses wrong ones. A validator for the keywords that it uses."""

import copy
import json
import unittest
from collections.abc import Callable
from typing import Any

import support

GOLDEN = support.ROOT / "tests" / "golden"
TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
}


def golden(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_bytes())


SCHEMA = golden("job.schema")


def has_type(value: Any, name: str) -> bool:
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def is_valid(value: Any, schema: dict[str, Any]) -> bool:
    """Whether the value is as the schema says. A keyword that is not in this table is an error of the test."""
    is_object, is_number = isinstance(value, dict), has_type(value, "number")
    keywords: dict[str, Callable[[Any], bool]] = {
        "$schema": lambda _: True,
        "$defs": lambda _: True,
        "title": lambda _: True,
        "description": lambda _: True,
        "$ref": lambda path: is_valid(value, referred(path)),
        "anyOf": lambda schemas: any(is_valid(value, one) for one in schemas),
        "type": lambda names: any(has_type(value, name) for name in ([names] if isinstance(names, str) else names)),
        "minimum": lambda least: not is_number or value >= least,
        "maximum": lambda most: not is_number or value <= most,
        "required": lambda keys: not is_object or all(key in value for key in keys),
        "properties": lambda known: not is_object or all(is_valid(value[key], known[key]) for key in known if key in value),
        "items": lambda item: not isinstance(value, list) or all(is_valid(one, item) for one in value),
    }
    return all(keywords[keyword](argument) for keyword, argument in schema.items())


def referred(path: str) -> dict[str, Any]:
    schema: dict[str, Any] = SCHEMA
    for key in path.removeprefix("#/").split("/"):
        schema = schema[key]
    return schema


class Schema(unittest.TestCase):
    def test_golden_jobs_are_valid_and_have_no_other_keys(self) -> None:
        keys: set[str] = set()
        for name, optional in (("job", set()), ("job-edit", set()), ("job-late", set()), ("job-preset", {"preset"})):
            job = golden(name)
            self.assertTrue(is_valid(job, SCHEMA), name)
            self.assertEqual(set(job), {*SCHEMA["required"], *optional})
            keys |= set(job["clip"])
        self.assertEqual(set(SCHEMA["properties"]), {*SCHEMA["required"], "preset"})
        self.assertEqual(keys, set(SCHEMA["properties"]["clip"]["properties"]))

    def test_keys_of_later_versions_are_valid(self) -> None:
        job = {**golden("job"), "later": [1]}
        self.assertTrue(is_valid(job, SCHEMA))

    def test_a_job_without_a_key_is_not_valid(self) -> None:
        for key in golden("job"):
            job = golden("job")
            del job[key]
            self.assertFalse(is_valid(job, SCHEMA), key)

    def test_wrong_values_are_not_valid(self) -> None:
        wrong: list[tuple[tuple[Any, ...], Any]] = [
            (("prompt",), None),
            (("negative_prompt",), 1),
            (("seed",), -1),
            (("seed",), 4294967296),
            (("seed",), 0.5),
            (("seed",), True),
            (("draft",), 0),
            (("final",), "no"),
            (("edit",), {}),
            (("edit",), {"strength": 1.5}),
            (("clip", "width"), 0),
            (("clip", "fps"), "16"),
            (("clip", "audio"), None),
            (("clip", "frames"), 0),
            # Without `frames_max`.
            (("clip", "frames"), None),
            (("first_frame",), {"width": 832}),
            (("last_frame",), [832, 480]),
            (("images",), None),
            (("images",), [None]),
            (("audios",), -1),
            (("source",), {"width": 832, "height": 480, "fps": 16}),
            (("preset",), ["steps"]),
        ]
        for (*path, last), value in wrong:
            job = copy.deepcopy(golden("job"))
            place = job
            for key in path:
                place = place[key]
            place[last] = value
            self.assertFalse(is_valid(job, SCHEMA), f"{path} {last} {value}")
