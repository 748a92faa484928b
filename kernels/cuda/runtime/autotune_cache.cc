#include "halftone/kernels/cuda/runtime/autotune_cache.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <thread>

#include "halftone/core/io/file.h"
#include "halftone/core/io/file_replacement.h"

namespace halftone::cuda {
namespace {

// Version 1 had cuDNN's engines without their settings, version 2 those of the heuristics alone.
constexpr const char* kHeader = "halftone-autotune 3";
constexpr int kTries = 100;
constexpr const char* kHexDigits = "0123456789abcdef";

std::string ToHex(const std::string& bytes) {
  std::string hex;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kHexDigits[byte >> 4];
    hex += kHexDigits[byte & 15];
  }
  return hex;
}

std::optional<std::string> FromHex(const std::string& hex) {
  const std::string digits = kHexDigits;
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    const size_t high = digits.find(hex[i]), low = digits.find(hex[i + 1]);
    if (high == std::string::npos || low == std::string::npos) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

// FNV-1a, 64 bits: for accidents, not against forgery.
std::string Checksum(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  std::string hex;
  for (int shift = 60; shift >= 0; shift -= 4) hex += kHexDigits[(hash >> shift) & 15];
  return hex;
}

bool FitsFile(const std::string& key, const std::string& value) {
  return !key.empty() && key.size() <= AutotuneCache::kMaxKeyBytes &&
         value.size() <= AutotuneCache::kMaxValueBytes &&
         std::all_of(key.begin(), key.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// "<key>\t<value in hex>\t<checksum of what is before>"
std::string LineOf(const std::string& key, const std::string& value) {
  const std::string text = key + "\t" + ToHex(value) + "\t";
  return text + Checksum(text);
}

std::optional<std::pair<std::string, std::string>> ParseLine(const std::string& line) {
  const size_t first = line.find('\t');
  if (first == std::string::npos) return std::nullopt;
  const size_t second = line.find('\t', first + 1);
  if (second == std::string::npos) return std::nullopt;
  if (line.substr(second + 1) != Checksum(line.substr(0, second + 1))) return std::nullopt;
  const std::string key = line.substr(0, first);
  const auto value = FromHex(line.substr(first + 1, second - first - 1));
  if (!value || !FitsFile(key, *value)) return std::nullopt;
  return std::make_pair(key, *value);
}

// The newest entries that fit.
std::string FileText(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::vector<std::string> lines;
  size_t bytes = std::string(kHeader).size() + 1;
  for (auto it = entries.rbegin(); it != entries.rend(); ++it) {
    lines.push_back(LineOf(it->first, it->second) + "\n");
    bytes += lines.back().size();
    if (lines.size() > AutotuneCache::kMaxFileEntries ||
        bytes > static_cast<size_t>(AutotuneCache::kMaxFileBytes)) {
      lines.pop_back();
      break;
    }
  }
  std::string text = std::string(kHeader) + "\n";
  for (auto it = lines.rbegin(); it != lines.rend(); ++it) text += *it;
  return text;
}

// Null if unset.
std::optional<std::string> Environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

}  // namespace

AutotuneCache& AutotuneCache::Global() {
  // Never destroyed: kernels may be made while the program ends.
  static auto* cache = new AutotuneCache(DefaultPath());
  return *cache;
}

std::string AutotuneCache::DefaultPath() {
  const std::string name = "/autotune.txt";
  if (const auto folder = Environment("HALFTONE_CACHE_DIR")) {
    return folder->empty() ? "" : *folder + name;
  }
  // A relative path is to be ignored (XDG Base Directory Specification).
  const auto caches = Environment("XDG_CACHE_HOME");
  if (caches && !caches->empty() && caches->front() == '/') return *caches + "/halftone" + name;
  const auto home = Environment("HOME");
  if (home && !home->empty()) return *home + "/.cache/halftone" + name;
  return "";
}

std::optional<std::string> AutotuneCache::Find(const std::string& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  LoadOnce();
  const auto it = values_.find(key);
  if (it == values_.end()) return std::nullopt;
  return it->second;
}

void AutotuneCache::Store(const std::string& key, const std::string& value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  LoadOnce();
  values_[key] = value;
  if (path_.empty() || !FitsFile(key, value)) return;
  pending_.emplace_back(key, value);
  if (WritePending()) pending_.clear();
}

void AutotuneCache::LoadOnce() {
  if (loaded_) return;
  loaded_ = true;
  for (auto& [key, value] : ReadEntries()) values_[key] = std::move(value);
}

AutotuneCache::Entries AutotuneCache::ReadEntries() const {
  if (path_.empty()) return {};
  const auto text = io::ReadFile(path_, kMaxFileBytes);
  if (!text.ok()) return {};
  std::istringstream lines(*text);
  std::string line;
  // Another version's file is replaced by the next Store.
  if (!std::getline(lines, line) || line != kHeader) return {};
  Entries entries;
  while (entries.size() < kMaxFileEntries && std::getline(lines, line)) {
    if (auto entry = ParseLine(line)) entries.push_back(std::move(*entry));
  }
  return entries;
}

bool AutotuneCache::WritePending() {
  std::error_code ignored;
  std::filesystem::create_directories(io::DirectoryOf(path_), ignored);
  // Another writer takes milliseconds. What is not written now goes with the next Store.
  std::optional<absl::StatusOr<io::FileReplacement>> begun;
  for (int tries = 0; tries < kTries; ++tries) {
    if (tries > 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    begun.emplace(io::FileReplacement::Begin(path_));
    if (!absl::IsFailedPrecondition(begun->status()) ||
        access(io::DirectoryOf(path_).c_str(), W_OK) != 0) {
      break;
    }
  }
  if (!begun->ok()) return false;
  io::FileReplacement& file = **begun;
  // Read under the writer's lock: nothing that others have written gets lost.
  Entries entries = ReadEntries();
  for (const auto& [key, value] : pending_) {
    const auto same = [&key = key](const auto& entry) { return entry.first == key; };
    entries.erase(std::remove_if(entries.begin(), entries.end(), same), entries.end());
    entries.emplace_back(key, value);
  }
  const std::string text = FileText(entries);
  return file.Write(text.data(), text.size()).ok() && file.Commit().ok();
}

}  // namespace halftone::cuda
