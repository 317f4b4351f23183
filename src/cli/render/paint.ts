import { styleText } from "node:util"
import { withoutControls } from "#lib/text.ts"
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

/** What others wrote, made safe for a terminal. */
export const printable = (text: string) => withoutControls(text, "\ufffd")
