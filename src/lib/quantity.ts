/** A quantity of a resource (`500m`, `1.5Gi`, `2e3`), exact. */
export type Quantity = {
  /** In nano units, rounded up as the server does. */
  readonly nano: bigint
  readonly format: "DecimalSI" | "BinarySI" | "DecimalExponent"
}

const decimal: Record<string, number> = { n: -9, u: -6, m: -3, "": 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }
const binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
const syntax = /^([+-]?)(\d*)(?:\.(\d*))?(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?\d+)?$/

/** Undefined when it is not a quantity. */
export function parseQuantity(text: string | number): Quantity | undefined {
  const matched = syntax.exec(String(text))
  if (!matched) return undefined
  const [, sign, whole = "", fraction = "", suffix = ""] = matched
  if (whole === "" && fraction === "") return undefined
  const digits = BigInt(whole + fraction)
  let format: Quantity["format"] = "DecimalSI"
  let nano: bigint
  const places = fraction.length
  if (binary.includes(suffix)) {
    format = "BinarySI"
    nano = divideUp(digits * 10n ** 9n * 1024n ** BigInt(binary.indexOf(suffix) + 1), 10n ** BigInt(places))
  } else {
    let exponent = decimal[suffix]
    if (exponent === undefined) {
      format = "DecimalExponent"
      exponent = Number(suffix.slice(1))
      if (Math.abs(exponent) > 100) return undefined
    }
    const shift = 9 + exponent - places
    nano = shift >= 0 ? digits * 10n ** BigInt(shift) : divideUp(digits, 10n ** BigInt(-shift))
  }
  return { nano: sign === "-" ? -nano : nano, format }
}

const divideUp = (a: bigint, b: bigint) => (a + b - 1n) / b

/** As the server writes it back: `1000m` is `1`, `0.5` is `500m`, `1024Mi` is `1Gi`. */
export function formatQuantity({ nano, format }: Quantity): string {
  if (nano === 0n) return "0"
  const sign = nano < 0n ? "-" : ""
  const amount = nano < 0n ? -nano : nano
  // Binary suffixes are for whole numbers of at least 1024; anything else is written in decimals.
  if (format === "BinarySI" && amount % 10n ** 9n === 0n && amount >= 1024n * 10n ** 9n) {
    let value = amount / 10n ** 9n
    let power = 0
    while (value % 1024n === 0n && power < binary.length) {
      value /= 1024n
      power++
    }
    return `${sign}${value}${power === 0 ? "" : binary[power - 1]}`
  }
  let exponent = -9
  let value = amount
  while (value % 1000n === 0n && exponent < 18) {
    value /= 1000n
    exponent += 3
  }
  if (format === "DecimalExponent") return `${sign}${value}${exponent === 0 ? "" : `e${exponent}`}`
  const suffix = Object.entries(decimal).find(([, each]) => each === exponent)![0]
  return `${sign}${value}${suffix}`
}

/** In thousandths, rounded up, which is as fine as the server keeps resources of pods. */
export const inMilli = (quantity: Quantity): Quantity => ({
  ...quantity,
  nano: (quantity.nano >= 0n ? divideUp(quantity.nano, 10n ** 6n) : quantity.nano / 10n ** 6n) * 10n ** 6n,
})

/** Whether it is written in the canonical form, as most are: a short cut around big numbers. */
export const isPlainQuantity = (text: unknown): text is string =>
  typeof text === "string" && /^[1-9]\d{0,2}(m|k|M|G|Ki|Mi|Gi)?$/.test(text)

/** The canonical form of a quantity. Undefined: not a quantity. */
export function canonicalQuantity(text: string): string | undefined {
  if (isPlainQuantity(text)) return text
  const quantity = parseQuantity(text)
  return quantity && formatQuantity(quantity)
}
