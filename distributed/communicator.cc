#include "halftone/distributed/communicator.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "halftone/core/check.h"
#include "halftone/distributed/collective.h"

namespace halftone::distributed {
namespace {

// Tags below this one are of rounds whose start all ranks count.
constexpr int kTags = 32768;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Every rank's answer to the same question: its status as bytes.
std::string Encoded(const absl::Status& status) {
  return Concat(static_cast<int>(status.code()), " ", Message(status));
}

absl::Status Decoded(const std::string& text, int rank) {
  const auto code = static_cast<absl::StatusCode>(std::atoi(text.c_str()));
  if (code == absl::StatusCode::kOk) return absl::OkStatus();
  const size_t blank = text.find(' ');
  return absl::Status(
      code, Concat("rank ", rank, ": ", blank == std::string::npos ? "" : text.substr(blank + 1)));
}

}  // namespace

bool Patience::Pause() {
  // The clock is asked now and then: most waits are short.
  constexpr int kTurns = 64;
  const double now = pauses_ % kTurns == 0 ? Now() : begin_;
  if (pauses_++ == 0) begin_ = now;
  if (now - begin_ > seconds_) return false;
  if (pauses_ < 200 * kTurns) {
    sched_yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

Communicator::Communicator(int rank, int size, int local_rank, int local_size,
                           double timeout_seconds)
    : rank_(rank),
      size_(size),
      local_rank_(local_rank),
      local_size_(local_size),
      timeout_seconds_(timeout_seconds) {
  under_way_.reserve(1024);
}

Communicator::~Communicator() = default;

absl::Status Communicator::Fail(absl::Status error) {
  if (status_.ok()) status_ = std::move(error);
  return status_;
}

int Communicator::NextTag() { return next_tag_ = (next_tag_ + 1) % kTags; }

absl::Status Communicator::Wait(Round& round, const char* what) {
  Patience patience(timeout_seconds_);
  for (;;) {
    HT_RETURN_IF_ERROR(status_);
    absl::StatusOr<bool> done = round.Test();
    if (!done.ok()) return Fail(Annotate(done.status(), Concat(what, ": ")));
    if (*done) return absl::OkStatus();
    Progress();
    if (!patience.Pause()) break;
  }
  const int missing = round.Missing();
  return Fail(absl::DeadlineExceededError(Concat(
      what, ": rank ", rank_, " has waited ", timeout_seconds_, " s ",
      missing < 0 ? std::string("for others to take its message") : Concat("for rank ", missing),
      "; expected every rank at the same step: that process hangs, or has left the job "
      "(HALFTONE_DISTRIBUTED_TIMEOUT)")));
}

absl::StatusOr<std::vector<std::string>> Communicator::Exchange(const std::string& mine,
                                                                const char* what) {
  const auto ranks = static_cast<size_t>(size_);
  std::vector<std::string> all(ranks);
  all[static_cast<size_t>(rank_)] = mine;
  if (size_ == 1) return all;
  HT_RETURN_IF_ERROR(status_);
  const std::unique_ptr<Round> round = NewRound();
  const uint64_t length = mine.size();
  std::vector<uint64_t> lengths(ranks);
  std::vector<Part> parts(ranks);
  for (size_t r = 0; r < ranks; ++r) parts[r] = {&length, sizeof(length), &lengths[r], 8};
  absl::Status started = round->Start(parts, NextTag());
  if (!started.ok()) return Fail(Annotate(started, Concat(what, ": ")));
  HT_RETURN_IF_ERROR(Wait(*round, what));
  for (size_t r = 0; r < ranks; ++r) {
    if (static_cast<int>(r) == rank_) continue;
    all[r].resize(lengths[r]);
    parts[r] = {mine.data(), mine.size(), all[r].data(), all[r].size()};
  }
  started = round->Start(parts, NextTag());
  if (!started.ok()) return Fail(Annotate(started, Concat(what, ": ")));
  HT_RETURN_IF_ERROR(Wait(*round, what));
  return all;
}

absl::Status Communicator::Broadcast(void* data, size_t bytes, int root) {
  if (size_ == 1 || bytes == 0) return absl::OkStatus();
  constexpr char kWhat[] = "broadcast";
  HT_RETURN_IF_ERROR(status_);
  // A binomial tree: in each turn every rank that has the bytes gives them to one that has not.
  const int position = (rank_ - root + size_) % size_;
  const std::unique_ptr<Round> round = NewRound();
  for (int distance = 1; distance < size_; distance *= 2) {
    const int tag = NextTag();
    std::vector<Part> parts(static_cast<size_t>(size_));
    const bool gives = position < distance && position + distance < size_;
    const bool takes = position >= distance && position < 2 * distance;
    if (!gives && !takes) continue;
    const int other = (root + (gives ? position + distance : position - distance)) % size_;
    Part& part = parts[static_cast<size_t>(other)];
    if (gives) {
      part.send = data;
      part.send_bytes = bytes;
    } else {
      part.receive = data;
      part.receive_bytes = bytes;
    }
    const absl::Status started = round->Start(parts, tag);
    if (!started.ok()) return Fail(Annotate(started, Concat(kWhat, ": ")));
    HT_RETURN_IF_ERROR(Wait(*round, kWhat));
  }
  return absl::OkStatus();
}

absl::Status Communicator::Send(void* data, size_t bytes, int from, int to) {
  constexpr char kWhat[] = "send";
  HT_RETURN_IF_ERROR(status_);
  const int tag = NextTag();
  if (from == to || bytes == 0 || (rank_ != from && rank_ != to)) return absl::OkStatus();
  std::vector<Part> parts(static_cast<size_t>(size_));
  if (rank_ == from) {
    parts[static_cast<size_t>(to)] = {data, bytes, nullptr, 0};
  } else {
    parts[static_cast<size_t>(from)] = {nullptr, 0, data, bytes};
  }
  const std::unique_ptr<Round> round = NewRound();
  const absl::Status started = round->Start(parts, tag);
  if (!started.ok()) return Fail(Annotate(started, Concat(kWhat, ": ")));
  return Wait(*round, kWhat);
}

absl::Status Communicator::Agree(const absl::Status& own, const char* what) {
  if (size_ == 1) return own;
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> all, Exchange(Encoded(own), what));
  for (int r = 0; r < size_; ++r) HT_RETURN_IF_ERROR(Decoded(all[static_cast<size_t>(r)], r));
  return absl::OkStatus();
}

absl::Status Communicator::Barrier(const char* what) { return Exchange("", what).status(); }

int Communicator::FindSilent(double seconds) {
  if (size_ == 1 || !status_.ok()) return -1;
  const auto ranks = static_cast<size_t>(size_);
  static constexpr char kHere = 1;
  answers_.resize(ranks);
  std::vector<Part> parts(ranks);
  for (size_t r = 0; r < ranks; ++r) parts[r] = {&kHere, 1, &answers_[r], 1};
  question_ = NewRound();
  if (!question_->Start(parts, NextTag()).ok()) return -1;
  Patience patience(seconds);
  for (;;) {
    const absl::StatusOr<bool> done = question_->Test();
    if (!done.ok() || *done) return -1;
    if (!patience.Pause()) return question_->Missing();
  }
}

void Communicator::Progress() {
  for (size_t i = 0; i < under_way_.size(); ++i) under_way_[i]->Advance();
}

Collective* Communicator::Find(const void* buffer) const {
  for (Collective* collective : under_way_) {
    if (collective->buffer() == buffer) return collective;
  }
  return nullptr;
}

absl::Status Communicator::Drain() {
  while (!under_way_.empty()) {
    bool failed = false;
    HT_RETURN_IF_ERROR(under_way_.front()->Wait(&failed));
  }
  return absl::OkStatus();
}

}  // namespace halftone::distributed
