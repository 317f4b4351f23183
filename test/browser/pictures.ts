/** The pictures of the docs, each with the story that it shows. `npm run screenshots` makes them. */
export const pictures = [
  { name: "overview", story: "page: overview", colorScheme: "light" },
  { name: "rollout", story: "page: halted", colorScheme: "light" },
  { name: "roll-back", story: "rollout: dialog, roll back", colorScheme: "light" },
  { name: "registry-outage", story: "page: outage", colorScheme: "dark" },
] as const
