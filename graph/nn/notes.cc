#include "halftone/graph/nn/notes.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace halftone::nn {
namespace {

struct Printed {
  std::mutex mutex;
  std::set<NoteKind> kinds;
};

Printed& PrintedInProcess() {
  static auto* const printed = new Printed();
  return *printed;
}

// True once for each kind.
bool IsFirst(NoteKind kind) {
  Printed& printed = PrintedInProcess();
  const std::lock_guard<std::mutex> lock(printed.mutex);
  return printed.kinds.insert(kind).second;
}

}  // namespace

void PrintNote(const std::string& text) {
  const char* setting = std::getenv("HALFTONE_NOTES");
  if (setting != nullptr && std::strcmp(setting, "0") == 0) return;
  std::fprintf(stderr, "halftone: note: %s\n", text.c_str());
}

void Notes::Add(NoteKind kind, std::string text, const std::string& graph, bool print) {
  const bool is_new = kinds_.insert(kind).second;
  const bool is_known = std::find(texts_.begin(), texts_.end(), text) != texts_.end();
  const bool may_repeat = kind == NoteKind::kPass || kind == NoteKind::kUnusedParameters ||
                          kind == NoteKind::kStuckScaler;
  if (is_known || (!is_new && !may_repeat)) return;
  const bool is_first = kind != NoteKind::kPass && IsFirst(kind);
  if (print || is_first) PrintNote("graph @" + graph + ": " + text);
  texts_.push_back(std::move(text));
}

void Notes::Remove(const std::string& text) {
  texts_.erase(std::remove(texts_.begin(), texts_.end(), text), texts_.end());
}

void Notes::ForgetPrinted() {
  Printed& printed = PrintedInProcess();
  const std::lock_guard<std::mutex> lock(printed.mutex);
  printed.kinds.clear();
}

}  // namespace halftone::nn
