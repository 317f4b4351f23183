import { useEffect, useRef } from "preact/hooks"
import type { CanaryDetails } from "#web/wire.ts"
import { clockTime } from "../../words.ts"

type Curve = CanaryDetails["curves"][number]

/** Weight and metrics over time. The library that draws them is fetched when the first curve is shown. */
export function Curves({ curves }: { curves: readonly Curve[] }) {
  return (
    <div class="curves">
      {curves
        .filter(({ at }) => at.length > 1)
        .map(curve => (
          <CurveShown curve={curve} key={curve.metric} />
        ))}
    </div>
  )
}

function CurveShown({ curve }: { curve: Curve }) {
  const box = useRef<HTMLDivElement>(null)
  const name = curve.metric || "weight in percent"
  const last = curve.value.at(-1)
  useEffect(() => {
    const element = box.current
    if (!element) return
    let end = () => {}
    let isWanted = true
    void import("uplot").then(({ default: Plot }) => {
      if (!isWanted) return
      const colour = (name: string) => {
        element.style.color = `var(--${name})`
        const { color } = getComputedStyle(element)
        element.style.color = ""
        return color
      }
      const [dim, line, stroke] = [colour("dim"), colour("line"), colour("busy")]
      const axis = { stroke: dim, grid: { stroke: line, width: 1 }, ticks: { stroke: line }, font: "12px sans-serif" }
      const plot = new Plot(
        {
          width: element.clientWidth,
          height: 120,
          legend: { show: false },
          cursor: { show: false },
          axes: [
            { ...axis, space: 90, values: (_, seconds) => seconds.map(at => clockTime(at * 1000).slice(0, 8)) },
            { ...axis, size: 52 },
          ],
          scales: {
            y: {
              range: (_, min, max) =>
                max === min ? [min - 1, max + 1] : [min - (max - min) / 10, max + (max - min) / 10],
            },
          },
          series: [{}, { stroke, width: 2, points: { show: false } }],
        },
        [curve.at.map(at => at / 1000), [...curve.value]],
        element,
      )
      end = () => plot.destroy()
    })
    return () => {
      isWanted = false
      end()
    }
  }, [curve])
  return (
    <figure>
      <figcaption>
        <b>{name}</b> <span class="dim">{last === undefined ? "" : Number(last.toPrecision(4))}</span>
      </figcaption>
      <div class="curve" ref={box} role="img" aria-label={`${name}, ${curve.value.length} values, now ${last}`} />
    </figure>
  )
}
