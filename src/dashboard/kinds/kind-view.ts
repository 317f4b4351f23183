import type { ComponentType } from "preact"
import type { Row, View } from "#web/wire.ts"
import type { Feed } from "../feeds.ts"

/** How the page shows the kinds of one view: a summary in the line of the overview, and the details. */
export type KindView = {
  Summary: ComponentType<{ row: Row }>
  Details: ComponentType<{ feed: Feed }>
}

/** A summary that is drawn only for rows of its own view. */
export function kindView<V extends View>(
  view: V,
  Summary: (props: { row: Extract<Row, { view: V }> }) => preact.JSX.Element | null,
  Details: KindView["Details"],
): KindView {
  const isOwn = (row: Row): row is Extract<Row, { view: V }> => row.view === view
  return { Summary: ({ row }) => (isOwn(row) ? Summary({ row }) : null), Details }
}
