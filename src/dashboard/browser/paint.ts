import type { CellState, Cells } from "#web/wire.ts"
import { type Arrangement, cornerOf, type Layout } from "../map.ts"
import { cellOrder } from "../words.ts"

export type Colours = Record<CellState | "mark" | "ground", string>

/**
 * The colours of the map as the theme has them now. A canvas understands neither custom properties nor `light-dark()`:
 * it would draw black. So an element is given each colour, and is asked what it became.
 */
export function resolveColours(beside: HTMLElement): Colours {
  const probe = document.createElement("span")
  probe.className = "probe"
  beside.append(probe)
  const style = getComputedStyle(probe)
  const read = (name: string) => {
    probe.style.setProperty("color", `var(--cell-${name})`)
    return style.color
  }
  const names = [...cellOrder, "Gone", "mark", "ground"] as const
  const colours = Object.fromEntries(names.map(name => [name, read(name.toLowerCase())])) as Colours
  probe.remove()
  return colours
}

/** How the inside of a cell differs by state, beside its colour. The edge always has the full colour. */
type Sign = "full" | "hollow" | "dot" | "half" | "ring" | "cross" | "bang" | "down" | "bar"
const signOf: Record<CellState, Sign> = {
  UpToDate: "full",
  Settling: "ring",
  Updating: "half",
  Waiting: "hollow",
  Blank: "dot",
  Failing: "bang",
  Failed: "cross",
  Regressed: "down",
  Unmanaged: "bar",
  Unmatched: "dot",
  Gone: "hollow",
}

export type Picture = { cells: Cells; arrangement: Arrangement; layout: Layout; colours: Colours; scale: number }

/** Draws all cells, one state after the other: a few calls of the canvas for each, whatever the number of cells. */
export function paintMap(context: CanvasRenderingContext2D, picture: Picture): void {
  const { cells, arrangement, layout, colours, scale } = picture
  const { places, groups } = arrangement
  const byState: number[][] = cells.states.map(() => [])
  for (const [at, place] of places.entries()) byState[cells.state[place]!]?.push(at)
  context.setTransform(scale, 0, 0, scale, 0, 0)
  context.clearRect(0, 0, layout.columns * layout.pitch, layout.height)
  if (groups.length === 0) return
  const corner = cornersOf(layout)
  for (const [number, members] of byState.entries()) {
    const state = cells.states[number]!
    if (members.length > 0) paintState(context, members.map(corner), { state, colours, side: layout.side })
  }
}

function paintState(
  context: CanvasRenderingContext2D,
  corners: readonly { x: number; y: number }[],
  { state, colours, side }: { state: CellState; colours: Colours; side: number },
) {
  const colour = colours[state]
  const sign = signOf[state]
  context.fillStyle = colour
  context.beginPath()
  for (const { x, y } of corners) context.rect(x, y, side, side)
  context.fill()
  if (sign === "full") return
  const edge = Math.max(1, Math.round(side / 8))
  context.fillStyle = colours.ground
  context.strokeStyle = colours.ground
  context.lineWidth = Math.max(1, side / 7)
  context.beginPath()
  for (const { x, y } of corners) drawSign(context, sign, { x, y, side, edge })
  if (sign === "cross" || sign === "bang" || sign === "down") context.stroke()
  else context.fill()
  if (sign !== "dot" && sign !== "ring") return
  // A core in the middle of the hollow.
  const core = Math.max(2, Math.round(side / 3))
  context.fillStyle = colour
  context.beginPath()
  for (const { x, y } of corners) context.rect(x + (side - core) / 2, y + (side - core) / 2, core, core)
  context.fill()
}

type Spot = { x: number; y: number; side: number; edge: number }

function drawSign(context: CanvasRenderingContext2D, sign: Sign, { x, y, side, edge }: Spot) {
  const inner = side - 2 * edge
  switch (sign) {
    case "hollow":
    case "dot":
    case "ring":
      return context.rect(x + edge, y + edge, inner, inner)
    case "half":
      return context.rect(x + side / 2, y + edge, side / 2 - edge, inner)
    case "bar":
      return context.rect(x + edge, y + side / 2 - 1, inner, 2)
    case "cross": {
      const gap = side * 0.26
      context.moveTo(x + gap, y + gap)
      context.lineTo(x + side - gap, y + side - gap)
      context.moveTo(x + side - gap, y + gap)
      return context.lineTo(x + gap, y + side - gap)
    }
    case "bang":
      context.moveTo(x + side / 2, y + side * 0.2)
      return context.lineTo(x + side / 2, y + side * 0.8)
    case "down":
      context.moveTo(x + side * 0.2, y + side * 0.35)
      context.lineTo(x + side / 2, y + side * 0.7)
      return context.lineTo(x + side * 0.8, y + side * 0.35)
  }
}

/** As `cornerOf`, for indexes that grow: it does not search for the group each time. */
function cornersOf(layout: Layout): (index: number) => { x: number; y: number } {
  const { groups, columns, pitch } = layout
  let at = 0
  return index => {
    while (at > 0 && index < groups[at]!.start) at--
    while (at < groups.length - 1 && index >= groups[at]!.end) at++
    const within = index - groups[at]!.start
    return { x: (within % columns) * pitch, y: groups[at]!.top + Math.floor(within / columns) * pitch }
  }
}

/** A frame around the cell that is selected. */
export function paintMark(context: CanvasRenderingContext2D, index: number, { layout, colours }: Picture): void {
  const { x, y } = cornerOf(layout, index)
  context.strokeStyle = colours.mark
  context.lineWidth = 2
  // Within the cell, whose edge stays: at the rim of the canvas there is no room around it.
  context.strokeRect(x + 2, y + 2, layout.side - 4, layout.side - 4)
}
