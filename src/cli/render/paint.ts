import { styleText } from "node:util"
import type { View } from "../command.ts"

type Style = "bold" | "dim" | "cyan" | "green" | "yellow" | "red"

/** Colours for a view that has them, and nothing at all for one that does not. */
export function paint({ colours }: Pick<View, "colours">): Record<Style, (text: string) => string> {
  // `validateStream: false`: whether this reader wants colours was decided once, in main.ts.
  const style = (name: Style) => (text: string) =>
    colours && text ? styleText(name, text, { validateStream: false }) : text
  return {
    bold: style("bold"),
    dim: style("dim"),
    cyan: style("cyan"),
    green: style("green"),
    yellow: style("yellow"),
    red: style("red"),
  }
}

// Control characters and what moves the cursor or reverses text: in a name or message they come from someone else.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const unprintable = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g

/** What others wrote, made safe for a terminal. */
export const printable = (text: string) => text.replace(unprintable, "\ufffd")
