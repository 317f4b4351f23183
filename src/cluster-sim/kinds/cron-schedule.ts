/** What a server says against a schedule; undefined when it has nothing to say. */
export function scheduleProblem(schedule: string): string | undefined {
  if (schedule.startsWith("@")) return descriptorProblem(schedule)
  const fields = schedule.trim().split(/\s+/)
  if (fields.length !== 5) return `expected exactly 5 fields, found ${fields.length}: [${fields.join(" ")}]`
  for (const [index, field] of fields.entries())
    for (const part of field.split(",")) {
      const problem = partProblem(part, bounds[index]!)
      if (problem) return problem
    }
  return undefined
}

type Bounds = { min: number; max: number; names?: readonly string[] }

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
const days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
const bounds: readonly Bounds[] = [
  { min: 0, max: 59 },
  { min: 0, max: 23 },
  { min: 1, max: 31 },
  { min: 1, max: 12, names: months },
  { min: 0, max: 6, names: days },
]

function descriptorProblem(descriptor: string): string | undefined {
  if (["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"].includes(descriptor))
    return undefined
  if (/^@every \d+(\.\d+)?(ns|us|µs|ms|s|m|h)/.test(descriptor)) return undefined
  if (descriptor.startsWith("@every "))
    return `failed to parse duration ${descriptor}: time: invalid duration ${JSON.stringify(descriptor.slice(7))}`
  return `unrecognized descriptor: ${descriptor}`
}

// A star, `5`, `1-5`, a star by 10, `mon-fri/2`.
function partProblem(part: string, { min, max, names }: Bounds): string | undefined {
  const [range = "", step, ...more] = part.split("/")
  if (more.length > 0) return `too many slashes: ${part}`
  const [from = "", to, ...rest] = range.split("-")
  if (rest.length > 0) return `too many hyphens: ${part}`
  const number = (text: string) => {
    const named = names?.indexOf(text.toLowerCase()) ?? -1
    return named >= 0 ? named + min : /^[+-]?\d+$/.test(text) ? Number(text) : undefined
  }
  const isAll = from === "*" || from === "?"
  for (const text of [
    ...(isAll ? [] : [from, ...(to === undefined ? [] : [to])]),
    ...(step === undefined ? [] : [step]),
  ]) {
    const value = number(text)
    if (value === undefined)
      return `failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`
    if (value < 0) return `negative number (${value}) not allowed: ${text}`
  }
  const start = isAll ? min : number(from)!
  const end = isAll || (to === undefined && step !== undefined) ? max : to === undefined ? start : number(to)!
  if (start < min) return `beginning of range (${start}) below minimum (${min}): ${part}`
  if (end > max) return `end of range (${end}) above maximum (${max}): ${part}`
  if (start > end) return `beginning of range (${start}) beyond end of range (${end}): ${part}`
  if (step !== undefined && number(step) === 0) return `step of range should be a positive number: ${part}`
  return undefined
}
