import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks"
import type { Cells, Lane } from "#web/wire.ts"
import { paintMap, paintMark, resolveColours } from "./browser/paint.ts"
import { type Arrangement, cellAt, cornerOf, idOf, layOut, stateOf, walk } from "./map.ts"
import { cellWords, counted, grouped } from "./words.ts"

type Props = {
  cells: Cells
  lanes: readonly Lane[]
  arrangement: Arrangement
  selected: number
  onSelect: (index: number) => void
}

/**
 * A cell for each object, drawn on a canvas. For readers of the screen it is a list with one current option, which the
 * arrow keys move: the canvas itself says nothing.
 */
export function ObjectMap({ cells, lanes, arrangement, selected, onSelect }: Props) {
  const box = useRef<HTMLDivElement>(null)
  const canvas = useRef<HTMLCanvasElement>(null)
  const [width, setWidth] = useState(0)
  const [hovered, setHovered] = useState(-1)
  const theme = useTheme()
  const layout = useMemo(() => layOut(arrangement, width), [arrangement, width])
  const colours = useMemo(() => (box.current ? resolveColours(box.current) : undefined), [theme, width])

  useLayoutEffect(() => {
    const element = box.current
    if (!element) return
    const measure = () => setWidth(Math.floor(element.clientWidth))
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(element)
    return () => observer.disconnect()
  }, [])

  useLayoutEffect(() => {
    const element = canvas.current
    const context = element?.getContext("2d")
    if (!element || !context || !colours || width === 0) return
    const scale = Math.max(1, devicePixelRatio)
    const size = { width: Math.ceil(width * scale), height: Math.max(1, Math.ceil(layout.height * scale)) }
    // To set a size clears the canvas and costs a moment: only where it differs.
    if (element.width !== size.width) element.width = size.width
    if (element.height !== size.height) element.height = size.height
    const picture = { cells, arrangement, layout, colours, scale }
    paintMap(context, picture)
    if (selected >= 0) paintMark(context, selected, picture)
  }, [cells, arrangement, layout, colours, selected, width])

  const count = arrangement.places.length
  const current = Math.min(selected, count - 1)
  const words = (index: number) => describe(cells, arrangement.places[index]!, lanes)
  const onKeyDown = (event: KeyboardEvent) => {
    const next = walk(layout, current, current < 0 ? "Home" : event.key, event.ctrlKey || event.metaKey)
    if (next === undefined || !isWalk(event.key)) return
    event.preventDefault()
    onSelect(next)
    const { y } = cornerOf(layout, next)
    const top = (box.current?.getBoundingClientRect().top ?? 0) + y
    if (top < 60 || top > innerHeight - 60) window.scrollBy({ top: top - innerHeight / 2 })
  }
  const at = (event: MouseEvent) => cellAt(layout, event.offsetX, event.offsetY) ?? -1
  const tip = hovered >= 0 && hovered < count ? { ...cornerOf(layout, hovered), text: words(hovered) } : undefined
  return (
    <div class="map" ref={box} style={{ blockSize: `${layout.height}px` }}>
      {layout.groups.map(({ tier, top, start, end }) => (
        <span class="map-heading" style={{ insetBlockStart: `${top - 24}px` }} aria-hidden="true">
          <b>{titleOf(tier, lanes)}</b> <span class="dim">{grouped(end - start)}</span>
        </span>
      ))}
      <canvas
        ref={canvas}
        aria-hidden="true"
        data-pitch={layout.pitch}
        data-side={layout.side}
        data-columns={layout.columns}
        data-tops={layout.groups.map(({ top, start, end }) => `${top}:${end - start}`).join(" ")}
      />
      <div
        class="map-keys"
        role="listbox"
        tabIndex={0}
        aria-label={`${counted(count, "object")}, one cell each; arrow keys move`}
        aria-activedescendant={current >= 0 ? "map-current" : undefined}
        onKeyDown={onKeyDown}
        onClick={event => {
          const index = at(event)
          if (index >= 0) onSelect(index)
        }}
        onMouseMove={event => setHovered(at(event))}
        onMouseLeave={() => setHovered(-1)}
      >
        {count > 0 && (
          <span
            id="map-current"
            class="hidden"
            role="option"
            aria-selected={current >= 0}
            aria-setsize={count}
            aria-posinset={Math.max(0, current) + 1}
          >
            {words(Math.max(0, current))}
          </span>
        )}
      </div>
      {tip && (
        <span class="tip" aria-hidden="true" style={tipPlace(tip, width, layout.pitch)}>
          {tip.text}
        </span>
      )}
    </div>
  )
}

const isWalk = (key: string) => /^(Arrow|Page|Home|End)/.test(key)

const tipPlace = ({ x, y }: { x: number; y: number }, width: number, pitch: number) => ({
  insetBlockStart: `${y + pitch + 6}px`,
  ...(x > width / 2 ? { insetInlineEnd: `${width - x - pitch}px` } : { insetInlineStart: `${x}px` }),
})

const titleOf = (tier: string, lanes: readonly Lane[]) =>
  lanes.find(lane => lane.tier === tier)?.title ?? (tier || "default tier")

/** What the map says of one object: `shop/dicom-17, tier earlyAccess, failed`. */
const describe = (cells: Cells, place: number, lanes: readonly Lane[]) =>
  `${idOf(cells, place)}, ${titleOf(cells.tiers[cells.tier[place]!] ?? "", lanes)}, ${cellWords[stateOf(cells, place)].word}`

/** Changes when colours may have changed: the theme of the system, forced colours, or the density of the screen. */
function useTheme(): number {
  const [version, setVersion] = useState(0)
  useEffect(() => {
    const queries = ["(prefers-color-scheme: dark)", "(forced-colors: active)", `(resolution: ${devicePixelRatio}dppx)`]
    const lists = queries.map(query => matchMedia(query))
    const changed = () => setVersion(before => before + 1)
    for (const list of lists) list.addEventListener("change", changed)
    return () => {
      for (const list of lists) list.removeEventListener("change", changed)
    }
  }, [])
  return version
}
