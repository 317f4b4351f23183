import type { ComponentChildren } from "preact"
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import { windowOf } from "./virtual.ts"

type Props = {
  count: number
  /** A first guess; the height of the first row that is drawn replaces it. */
  rowHeight: number
  row: (index: number) => ComponentChildren
  class?: string
  /** Scrolls within itself; otherwise with the page. */
  isBox?: boolean
  /** Brought into view when it changes. */
  focused?: number
}

/** Draws only the rows that can be seen, and as much space as the others take. */
export function VirtualRows({ count, rowHeight, row, isBox = false, focused, ...rest }: Props) {
  const element = useRef<HTMLDivElement>(null)
  const [height, setHeight] = useState(rowHeight)
  const [seen, setSeen] = useState({ top: 0, size: 900 })
  useEffect(() => {
    const box = element.current
    if (!box) return
    const look = () => {
      if (isBox) return setSeen({ top: box.scrollTop, size: box.clientHeight })
      setSeen({ top: Math.max(0, -box.getBoundingClientRect().top), size: innerHeight })
    }
    look()
    const scroller: EventTarget = isBox ? box : window
    scroller.addEventListener("scroll", look, { passive: true })
    window.addEventListener("resize", look)
    return () => {
      scroller.removeEventListener("scroll", look)
      window.removeEventListener("resize", look)
    }
  }, [isBox])
  const { first, last } = windowOf({ count, height, ...seen })
  useLayoutEffect(() => {
    const drawn = element.current?.querySelector<HTMLElement>("[data-row]")?.offsetHeight
    if (drawn && Math.abs(drawn - height) > 0.5) setHeight(drawn)
  })
  useEffect(() => {
    const box = element.current
    if (focused === undefined || focused < 0 || !box || !isBox) return
    const top = focused * height
    if (top < box.scrollTop) box.scrollTop = top
    else if (top + height > box.scrollTop + box.clientHeight) box.scrollTop = top + height - box.clientHeight
  }, [focused, height, isBox])
  return (
    <div ref={element} role="rowgroup" class={rest.class} tabIndex={isBox ? -1 : undefined}>
      <div role="presentation" style={{ blockSize: `${first * height}px` }} />
      {Array.from({ length: last - first }, (_, offset) => row(first + offset))}
      <div role="presentation" style={{ blockSize: `${(count - last) * height}px` }} />
    </div>
  )
}
