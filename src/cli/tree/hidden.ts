import type { Command } from "../command.ts"

/** Commands that shells call. Help does not list them. */
export const hidden: readonly Command[] = [
  {
    name: "__complete",
    summary: "candidates for a shell's completion, one per line",
    arguments: [
      { name: "WHAT", description: "what to complete", required: true },
      { name: "PREFIX", description: "what was typed so far" },
      { name: "OF", description: "the rollout whose tiers they are" },
    ],
    connects: true,
    load: () => import("../commands/complete.ts"),
  },
  {
    name: "__complete_line",
    summary: "candidates for the end of a line, in the form that kubectl expects from a plug-in",
    arguments: [{ name: "WORD", description: "the words after kubectl aim, the last one unfinished", many: true }],
    load: () => import("../commands/complete-line.ts"),
  },
]
