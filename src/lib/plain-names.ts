/**
 * Makes `__proto__` a name like any other in this process: untrusted objects are read and merged by name, and writing to
 * this one would change what an object inherits instead of its own properties. An object's prototype is read by
 * `Object.getPrototypeOf`, which stays.
 */
Reflect.deleteProperty(Object.prototype, "__proto__")
