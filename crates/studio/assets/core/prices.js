/** @file What a video will cost by the prices of its model, computed as the service does, and what a budget has left. */

import { sizeName } from "./models.js";

/**
 * @typedef {object} Prices
 * @property {string} currency
 * @property {Record<string, number>} per_second by resolution, or by size
 * @property {number} per_clip
 * @property {number} per_input_image
 */

/**
 * @typedef {object} Cost
 * @property {number} amount
 * @property {string} currency
 * @property {boolean} estimated
 */

/**
 * @typedef {object} BudgetUse
 * @property {number | null} per_day
 * @property {number} spent_today
 * @property {number | null} per_month
 * @property {number} spent_this_month
 */

/** @typedef {{currency: string, budgets: {key: BudgetUse, project: BudgetUse}}} Usage */

/** An amount with two digits behind the point, or as many as it has. @param {number} amount @param {string} currency */
export function money(amount, currency) {
  const [whole, digits = ""] = String(Math.round(amount * 1e6) / 1e6).split(".");
  return `${whole}.${digits.padEnd(2, "0")}\u00a0${currency}`;
}

/**
 * The price of a second. An edit may have the size of another model's video, which costs what the dearest size does.
 * @param {Prices} prices
 * @param {{size: string, isDraft: boolean}} video its size, or the name of its resolution
 */
function perSecond({ per_second: by }, { size, isDraft }) {
  const names = size.includes("x") ? [size, sizeName(size)] : [size];
  const found = (isDraft ? ["480p", ...names] : names).find((name) => name in by);
  return found ? by[found] : Math.max(0, ...Object.values(by));
}

/**
 * What a request costs, at its longest.
 * @param {Prices} prices
 * @param {{size: string, seconds: number, images: number, isDraft: boolean}} video
 */
export const costOf = (prices, video) =>
  prices.per_clip + prices.per_input_image * video.images + perSecond(prices, video) * video.seconds;

/** The cost of a task in words; empty without one. @param {Cost} [cost] */
export function costWords(cost) {
  if (!cost) return "";
  return cost.estimated ? `about ${money(cost.amount, cost.currency)}` : money(cost.amount, cost.currency);
}

/** What is left of the budget that has least left; empty without a budget. @param {Usage} usage */
export function leftWords({ currency, budgets }) {
  const left = [budgets.key, budgets.project].flatMap((budget) => [
    { limit: budget.per_day, spent: budget.spent_today, period: "today" },
    { limit: budget.per_month, spent: budget.spent_this_month, period: "this month" },
  ]);
  const [least] = left
    .flatMap(({ limit, spent, period }) => (limit === null ? [] : [{ limit, left: Math.max(0, limit - spent), period }]))
    .sort((a, b) => a.left - b.left);
  if (!least) return "";
  return `${money(least.left, currency)} of ${money(least.limit, currency)} left ${least.period}.`;
}
