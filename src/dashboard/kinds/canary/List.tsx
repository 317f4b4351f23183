import type { CanaryRow } from "#web/wire.ts"
import { Bar, Image } from "../../parts.tsx"
import { spaced } from "../../words.ts"

export function Summary({ row }: { row: CanaryRow }) {
  const { weight, phase, failedChecks, threshold, images } = row
  return (
    <>
      <span class="progress">
        <Bar parts={[{ share: weight, tone: "busy" }]} />
        <span class="numbers">{weight} %</span>
        <span class="dim rate">
          {spaced(phase)}
          {failedChecks > 0 && `, ${failedChecks} of ${threshold} checks failed`}
        </span>
      </span>
      <small class="clip">
        {images.from && images.from !== images.to && (
          <>
            <Image image={images.from} /> →{" "}
          </>
        )}
        <Image image={images.to} />
      </small>
    </>
  )
}
