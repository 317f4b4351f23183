import { styleText } from "node:util"
import type { View } from "../command.ts"

type Style = "bold" | "dim" | "cyan" | "green" | "yellow" | "red"

/** Colours for a view that has them; plain text for others. */
export function paint({ colours }: Pick<View, "colours">): Record<Style, (text: string) => string> {
  // `validateStream: false`: main.ts has decided whether to use colours.
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
