/** The role by which a namespace lets us change its objects, and the name of every binding of it (`aim grant`). */
export const grantName = "aim-target"
