//! Python wheels without content, for tests that install packages: pip finds them by `PIP_NO_INDEX=1` and
//! `PIP_FIND_LINKS=FOLDER`.

use std::fs;
use std::path::Path;

use crate::release_server::archive;

/// Writes a wheel for each `NAME==VERSION` of `requirements` into `folder`. `modules` has the code of packages that need some;
/// the others can be imported, and that is all.
pub fn write_wheels(folder: &Path, requirements: &str, modules: &[(&str, &str)]) {
    let lines = requirements.lines().map(str::trim);
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, version) = line.split_once("==").expect("an exact version");
        let code = modules.iter().find(|(module, _)| *module == name);
        write_wheel(folder, name, version, code.map_or("", |(_, code)| *code));
    }
}

/// Writes one wheel with one module of the package's name.
pub fn write_wheel(folder: &Path, name: &str, version: &str, code: &str) {
    let own = name.replace(['-', '.'], "_");
    let info = format!("{own}-{version}.dist-info");
    let metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n");
    let wheel =
        "Wheel-Version: 1.0\nGenerator: stand-in\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
    let module = format!("{}/__init__.py", own.to_lowercase());
    let paths = [
        module,
        format!("{info}/METADATA"),
        format!("{info}/WHEEL"),
        format!("{info}/RECORD"),
    ];
    let record: String = paths.iter().map(|path| format!("{path},,\n")).collect();
    let texts = [code, &metadata, wheel, &record];
    let files = paths
        .iter()
        .zip(texts)
        .map(|(path, text)| (path.as_str(), 0o644, text.as_bytes()));
    let file = folder.join(format!("{own}-{version}-py3-none-any.whl"));
    fs::write(file, archive(files)).expect("a folder that can be written");
}
