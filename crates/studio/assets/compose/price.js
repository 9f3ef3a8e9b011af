/** @file What the video of the form will cost, in words. */

import { costOf, money } from "../core/prices.js";
import { sizeOf } from "./shape.js";

/** @typedef {import("../core/request.js").Form} Form */

/** @param {Form} form */
function imageCount(form) {
  const filled = (/** @type {string[]} */ urls) => urls.filter((url) => url.trim()).length;
  if (form.source || form.pictures === "references") return filled(form.images);
  if (form.pictures === "words") return 0;
  return form.pictures === "both" ? 2 : 1;
}

/**
 * Empty for a model without prices.
 * @param {Form} form
 * @param {import("../core/models.js").Model} model
 */
export function priceWords(form, { capabilities: can, prices }) {
  if (!prices) return "";
  const isAuto = !form.source && form.seconds === "auto";
  const seconds = form.source ? Number(form.source.seconds) : isAuto ? can.seconds_max : Number(form.seconds);
  const size = form.source ? form.source.size : (sizeOf(form, can) ?? form.size);
  const isDraft = !form.source && can.draft && form.draft;
  const cost = costOf(prices, { size, seconds, images: imageCount(form), isDraft });
  return `Costs ${isAuto ? "at most" : "about"} ${money(cost, prices.currency)}.`;
}
