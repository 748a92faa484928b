// Says what a bad access was before the process dies of it.
#pragma once

namespace halftone::emulation {

// Not under a sanitizer, which has a handler of its own.
void InstallFaultHandler();
// Gives the calling thread a stack for the handler, so that it can tell of a full one.
void PrepareThreadForFaults();

}  // namespace halftone::emulation
