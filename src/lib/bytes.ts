/** `35 MiB`, `1.2 GiB`. */
export const inUnits = (bytes: number) =>
  bytes < 2 ** 30 ? `${Math.round(bytes / 2 ** 20)} MiB` : `${(bytes / 2 ** 30).toFixed(1)} GiB`

/** `35 MiB of 1.2 GiB`; without the second where it is not known. */
export const share = (doneBytes: number, totalBytes: number | undefined) =>
  totalBytes === undefined ? inUnits(doneBytes) : `${inUnits(doneBytes)} of ${inUnits(totalBytes)}`
