/** @file The part of the form for reference material: how pictures are given, which they are, and sounds. */

import { h } from "../core/dom.js";
import { kindOf } from "../core/files.js";
import { pictureWays, whyNot } from "../core/models.js";
import { choices, remark } from "./controls.js";
import { toast } from "../view/toast.js";
import { urlList, urlRow } from "./urls.js";

/** @typedef {import("../core/request.js").Form} Form */

/**
 * @param {(change: Partial<Form>) => void} change
 */
export function picturesPart(change) {
  const way = choices("Pictures", (value) => change({ pictures: /** @type {Form["pictures"]} */ (value) }));
  const first = urlRow("picture", "First frame", (first) => change({ first }));
  const last = urlRow("picture", "Last frame", (last) => change({ last }));
  const images = urlList("picture", "Reference picture", (images) => change({ images }));
  const audios = urlList("sound", "Reference sound", (audios) => change({ audios }));
  const audioNote = remark([]);
  const audioPart = h(
    "div",
    { class: "field", role: "group", "aria-label": "Reference sound" },
    h("div", { class: "field-head" }, h("span", { class: "label" }, "Sound to follow")),
    audios.root,
    audioNote.root,
  );
  const root = h("div", { class: "part" }, way.root, first.root, last.root, images.root, audioPart);
  const rows = () => [first, last, ...images.rows(), ...audios.rows()];
  const isShown = (/** @type {HTMLElement} */ part) => !part.closest("[hidden]");
  /** How a picture can be given where the form has no place for one. @type {Form["pictures"] | null} */
  let placeFor = null;

  /** Where there is room for pictures. @param {File[]} files */
  function takePictures(files) {
    if (!isShown(first.root) && !isShown(images.root) && placeFor) change({ pictures: placeFor });
    if (isShown(images.root)) return images.takeAll(files);
    const places = [first, last].filter((row) => isShown(row.root));
    const row = places.find((one) => one.isEmpty()) ?? places[0];
    if (row) row.take(files);
    else toast("This model takes no pictures.", { isError: true });
  }

  return {
    root,
    /** Files that were dropped on the form or pasted into it. @param {File[]} files @param {Element} target */
    take(files, target) {
      const row = rows().find((one) => one.root.contains(target));
      if (row) return row.take(files);
      const sounds = files.filter((file) => kindOf(file) === "sound");
      const pictures = files.filter((file) => kindOf(file) === "picture");
      if (sounds.length && isShown(audios.root)) audios.takeAll(sounds);
      else if (sounds.length) toast("There is no field for a sound now.", { isError: true });
      if (pictures.length) takePictures(pictures);
      if (!sounds.length && !pictures.length) toast("This is neither a picture nor a sound.", { isError: true });
    },
    /** A row whose file is not there yet. */
    uploading: () => rows().find((row) => row.isUploading() && isShown(row.root)),
    /** @param {Form} form @param {import("../core/models.js").Model[]} models @param {import("../core/models.js").Model} model */
    show(form, models, model) {
      const can = model.capabilities;
      const ways = pictureWays(can).map(({ value, label, takes }) => {
        const has = (/** @type {typeof can} */ one) => pictureWays(one).some((way) => way.value === value && way.takes);
        return { value, label, reason: takes ? "" : whyNot(models, model, has) };
      });
      const isEdit = form.source !== null;
      placeFor = can.first_frame ? "first" : can.reference_images_max ? "references" : null;
      way.show(
        ways,
        isEdit ? "references" : form.pictures,
        isEdit ? "An edit starts from its video; reference pictures may be added." : "",
      );
      const shows = isEdit ? "references" : form.pictures;
      first.root.hidden = shows !== "first" && shows !== "both";
      last.root.hidden = shows !== "both";
      images.root.hidden = shows !== "references" || !can.reference_images_max;
      first.show(form.first);
      last.show(form.last);
      images.show(form.images, can.reference_images_max);
      const silent = whyNot(models, model, (one) => one.reference_audios_max > 0);
      const noSound = isEdit ? "" : silent;
      audioPart.hidden = isEdit || (shows !== "references" && !silent);
      audioPart.classList.toggle("is-off", Boolean(noSound));
      audioNote.show(noSound);
      audios.root.hidden = Boolean(noSound);
      audios.show(form.audios, can.reference_audios_max);
    },
    /** The control of a field of the API. @param {string} param */
    find(param) {
      if (param === "first_frame" || param === "input_reference") return first;
      if (param === "last_frame") return last;
      const [, list, index] = param.match(/^(reference_images|reference_audios)(?:\[(\d+)\])?$/) ?? [];
      if (!list) return undefined;
      const rows = (list === "reference_images" ? images : audios).rows();
      // Empty rows are not sent, and so the service does not count them.
      return rows.filter((row) => row.control.value.trim())[Number(index ?? 0)] ?? rows[0];
    },
  };
}
