/** What the server says to a quantity it cannot read. */
export const refusalOf = (value: unknown) =>
  typeof value === "string" && /^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$/.test(value)
    ? "unable to parse quantity's suffix"
    : "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

const binary = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
const decimal: Record<string, number> = { n: -9, u: -6, m: -3, "": 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }
const nano = 10n ** 9n

/** The one way a quantity is written back: `1000m` is `1`, `0.5` is `500m`, `1024Mi` is `1Gi`. Undefined: no quantity. */
export function canonicalQuantity(text: string): string | undefined {
  const parts = /^([+-]?)(\d*)(?:\.(\d*))?(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)$/.exec(text)
  if (!parts) return undefined
  const [, sign, whole = "", fraction = "", exponent, suffix = ""] = parts
  if (whole === "" && fraction === "") return undefined
  const digits = BigInt(whole + fraction || "0")
  const power = binary.indexOf(suffix)
  // The value in nano units; what is finer is rounded up, away from zero.
  const scale = exponent ? Number(exponent.slice(1)) : suffix === "" || power > 0 ? 0 : decimal[suffix]!
  const factor = (power > 0 ? 1024n ** BigInt(power) : 1n) * nano
  const shift = scale - fraction.length
  const value = shift >= 0 ? digits * factor * 10n ** BigInt(shift) : ceil(digits * factor, 10n ** BigInt(-shift))
  if (value === 0n) return "0"
  const negative = sign === "-" ? "-" : ""
  // A binary suffix is kept for what is whole and at least 1024; anything else of it is told in decimals.
  if (power > 0 && value % nano === 0n && value >= 1024n * nano) return negative + inBinary(value / nano)
  if (exponent) return negative + inExponents(value, exponent[0]!)
  return negative + inDecimal(value)
}

const ceil = (value: bigint, by: bigint) => (value + by - 1n) / by

function inBinary(value: bigint): string {
  let power = 0
  let rest = value
  while (rest % 1024n === 0n && power < binary.length - 1) {
    rest /= 1024n
    power++
  }
  return `${rest}${binary[power]}`
}

function inDecimal(nanos: bigint): string {
  const { rest, power } = byThousands(nanos)
  const suffix = Object.keys(decimal).find(name => decimal[name] === power)
  return `${rest}${suffix}`
}

function inExponents(nanos: bigint, letter: string): string {
  const { rest, power } = byThousands(nanos)
  return power === 0 ? `${rest}` : `${rest}${letter}${power}`
}

function byThousands(nanos: bigint): { rest: bigint; power: number } {
  let power = -9
  let rest = nanos
  while (rest % 1000n === 0n && power < 18) {
    rest /= 1000n
    power += 3
  }
  return { rest, power }
}
