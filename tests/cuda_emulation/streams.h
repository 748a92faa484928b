// Streams as queues of work, events as positions in them, and the state of a capture.
//
// 1. Work is numbered per stream. `after` of a piece of work only ever names work that was issued
//    before it, so running what it waits for ends.
// 2. Eager: a queue is empty when a call returns, but for work that waits for another process and what is
//    behind it. Lazy: it runs when something waits for it.
// 3. Work that waits for another process goes on when the host queries or waits, as all work does here, or
//    while it makes no call (nccl_api.cc).
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

struct CUstream_st;

namespace halftone::emulation {

struct Capture;

// The work of a stream up to a number.
struct Position {
  std::shared_ptr<CUstream_st> stream;
  uint64_t number = 0;
};

// Does a piece of work. False: not done yet, since another process has its part to do; call it again.
using Step = std::function<bool()>;

struct Work {
  Step run;  // may be empty
  std::vector<Position> after;
};

// A recorded event. Each record of an event is another one.
struct EventRecord {
  Position position;
  std::chrono::steady_clock::time_point when;
  // Instead of a position: recorded in a capture, after these nodes.
  std::shared_ptr<Capture> capture;
  std::vector<size_t> nodes;
};

struct GraphNode {
  cudaGraphNodeType type;
  // Makes the step of one launch.
  std::function<Step()> begin;
  std::vector<size_t> after;  // earlier nodes
};

struct Capture {
  unsigned long long id;
  cudaStreamCaptureMode mode;
  CUstream_st* origin;
  std::thread::id thread;
  bool invalidated = false;
  std::vector<GraphNode> nodes;
  std::vector<CUstream_st*> streams;  // origin and those that joined by events
};

}  // namespace halftone::emulation

// What NVIDIA's headers leave incomplete. These handles are the emulated device's.
struct CUstream_st {
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  std::deque<halftone::emulation::Work> queue;
  uint64_t issued = 0, done = 0;
  std::vector<halftone::emulation::Position> waits;  // of the work issued next
  std::shared_ptr<halftone::emulation::Capture> capture;
  std::vector<size_t> capture_tail;  // nodes that the next captured one comes after

  // Waits for, and is waited for by, the legacy stream.
  bool blocking() const { return (flags & cudaStreamNonBlocking) == 0; }
};

struct CUevent_st {
  int device = 0;
  unsigned flags = 0;
  std::shared_ptr<halftone::emulation::EventRecord> record;  // null: never recorded
};
