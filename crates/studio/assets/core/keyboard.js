/** @file What this visitor's keyboard calls its keys. */

/** Whether ⌘ is what Ctrl is elsewhere. */
const isApple = /^(Mac|iP)/.test(navigator.platform);

/** The keys that send the form, as they are printed on a keyboard. */
export const SEND = isApple ? "⌘ ↵" : "Ctrl ↵";

/** The same in words. */
export const SEND_WORDS = isApple ? "⌘ Enter" : "Ctrl Enter";
