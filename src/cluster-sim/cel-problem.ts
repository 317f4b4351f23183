import { type CompileOptions, chainsIn, compile, syntaxErrorIn } from "#lib/cel.ts"

/** The error of the server's compiler for an expression, in our own words where we do not know the server's. */
export function compileProblem(
  text: string,
  variables: readonly string[],
  options: CompileOptions = {},
): string | undefined {
  const syntax = syntaxErrorIn(text)
  if (syntax) return compilerSays(text, syntax.at, `Syntax error: ${syntaxWords[syntax.summary] ?? syntax.summary}`)
  try {
    compile(text, variables, options)
    return undefined
  } catch (error) {
    const [first = ""] = (error instanceof Error ? error.message : String(error)).split("\n")
    const unknown = /^Unknown variable: (\w+)/.exec(first)?.[1]
    const [found] = chainsIn(text).find(([root]) => root?.name === unknown) ?? []
    if (found) return compilerSays(text, found.at, `undeclared reference to '${unknown}' (in container '')`)
    return `compilation failed: ERROR: <input>: ${first}`
  }
}

const syntaxWords: Record<string, string> = {
  "Unexpected token: EOF":
    "mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
}

/** A compiler error with the line of the expression and a mark below the place. */
export function compilerSays(text: string, at: number, what: string): string {
  const before = text.slice(0, at).split("\n")
  const column = before.at(-1)!.length
  const line = text.split("\n")[before.length - 1]
  return `compilation failed: ERROR: <input>:${before.length}:${column + 1}: ${what}\n | ${line}\n | ${".".repeat(column)}^`
}
