// What a child of fork() has to know: it has a copy of the memory, but of the threads only the one
// that forked. OpenMP does not notice: that thread would wait for a team that is gone.
#pragma once

#include <functional>

#include "halftone/core/status.h"

namespace halftone {

// How many forks lie between the process that asked first and this one: 0 there, 1 in its child.
// What is made in one generation and needs threads or a device does not work in the next.
int ForkGeneration();

// Whether this is the thread of a child that forked.
bool IsForkedThread();

// Runs `fn` on a thread that the child has made, whose OpenMP team is its own, and waits for it.
// Requires: IsForkedThread(). Errors: ResourceExhausted if the system refuses threads; those of
// `fn`.
absl::Status RunBesideForkedThread(const std::function<absl::Status()>& fn);

}  // namespace halftone
