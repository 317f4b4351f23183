import { UsageError } from "./command.ts"

/** The number that an option such as `--stops-per-minute` was given. */
export function readCount(option: string, text: string): number {
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text)
  throw new UsageError(`${option}: ${text} is not a number from 1 to 9999`)
}

/** The share that an option such as `--image-gc-high-threshold` was given. */
export function readPercent(option: string, text: string): number {
  if (/^([1-9]\d?|100)$/.test(text)) return Number(text)
  throw new UsageError(`${option}: ${text} is not a percentage from 1 to 100`)
}
