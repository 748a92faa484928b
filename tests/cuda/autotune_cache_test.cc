#include "halftone/kernels/cuda/runtime/autotune_cache.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <thread>

#include "halftone/tests/cuda/scoped_environment.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {
namespace {

using ::testing::Optional;
using ::testing::StartsWith;

const char kKey[] = "cublaslt 130100 | NVIDIA X 9.0 | 3x5x7 f16";

TEST(AutotuneCacheTest, KeepsValuesInMemoryWithoutAFile) {
  cuda::AutotuneCache cache("");
  EXPECT_EQ(cache.Find(kKey), std::nullopt);
  cache.Store(kKey, "one");
  EXPECT_THAT(cache.Find(kKey), Optional(std::string("one")));
  cache.Store(kKey, "two");
  EXPECT_THAT(cache.Find(kKey), Optional(std::string("two")));
}

TEST(AutotuneCacheTest, RoundTripsEveryByteThroughTheFile) {
  const TempDir dir;
  // The folder is made.
  const std::string path = dir.Path("new/deep/autotune.txt");
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  {
    cuda::AutotuneCache cache(path);
    cache.Store(kKey, bytes);
    cache.Store("empty", "");
    cache.Store("twice", "old");
    cache.Store("twice", "new");
  }
  cuda::AutotuneCache again(path);
  EXPECT_THAT(again.Find(kKey), Optional(bytes));
  EXPECT_THAT(again.Find("empty"), Optional(std::string()));
  EXPECT_THAT(again.Find("twice"), Optional(std::string("new")));
  EXPECT_EQ(again.Find("another"), std::nullopt);
  const std::string text = Bytes(path);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;
}

TEST(AutotuneCacheTest, PassesOverDamagedLines) {
  const TempDir dir(MemoryDir());
  const std::string path = dir.Path("autotune.txt");
  {
    cuda::AutotuneCache cache(path);
    cache.Store("first", "value one");
    cache.Store("second", "value two");
  }
  const std::string good = Bytes(path);
  ASSERT_THAT(good, StartsWith("halftone-autotune 3\n"));
  const size_t header_end = good.find('\n');
  // Whichever byte is damaged, the values that are found are those that were stored.
  for (size_t i = 0; i < good.size(); ++i) {
    for (const char damage : {'\0', '\n', '\t', 'f', '\xff'}) {
      std::string bad = good;
      if (bad[i] == damage) continue;
      bad[i] = damage;
      WriteBytes(path, bad);
      cuda::AutotuneCache cache(path);
      const auto first = cache.Find("first"), second = cache.Find("second");
      ASSERT_TRUE(!first || *first == "value one") << "byte " << i;
      ASSERT_TRUE(!second || *second == "value two") << "byte " << i;
      // A damaged header takes all with it, and a lost line end both of its lines.
      if (i > header_end && good[i] != '\n') {
        ASSERT_TRUE(first || second) << "byte " << i;
      }
    }
  }
}

TEST(AutotuneCacheTest, ReadsAFileCutShort) {
  const TempDir dir(MemoryDir());
  const std::string path = dir.Path("autotune.txt");
  {
    cuda::AutotuneCache cache(path);
    cache.Store("first", "value one");
    cache.Store("second", "value two");
  }
  const std::string good = Bytes(path);
  for (size_t size = 0; size + 1 < good.size(); ++size) {
    WriteBytes(path, good.substr(0, size));
    cuda::AutotuneCache cache(path);
    EXPECT_EQ(cache.Find("second"), std::nullopt) << size;
  }
}

TEST(AutotuneCacheTest, ReplacesAFileOfAnotherKind) {
  const TempDir dir;
  const std::string path = dir.Write("autotune.txt", "halftone-autotune 3\nfirst\t00\t00\n");
  cuda::AutotuneCache cache(path);
  EXPECT_EQ(cache.Find("first"), std::nullopt);
  cache.Store("first", "x");
  EXPECT_THAT(cuda::AutotuneCache(path).Find("first"), Optional(std::string("x")));
}

TEST(AutotuneCacheTest, LeavesAFolderAloneThatHasItsName) {
  const TempDir dir;
  const std::string path = dir.Path("autotune.txt");
  ASSERT_EQ(mkdir(path.c_str(), 0777), 0);
  cuda::AutotuneCache cache(path);
  cache.Store("first", "x");
  EXPECT_THAT(cache.Find("first"), Optional(std::string("x")));
  EXPECT_EQ(cuda::AutotuneCache(path).Find("first"), std::nullopt);
}

TEST(AutotuneCacheTest, KeepsOutOfTheFileWhatDoesNotFit) {
  const TempDir dir;
  const std::string path = dir.Path("autotune.txt");
  const std::string long_key(cuda::AutotuneCache::kMaxKeyBytes + 1, 'k');
  const std::string long_value(cuda::AutotuneCache::kMaxValueBytes + 1, 'v');
  const std::string longest(cuda::AutotuneCache::kMaxValueBytes, 'v');
  cuda::AutotuneCache cache(path);
  for (const std::string& key : {long_key, std::string("a\tb"), std::string("a\nb")}) {
    cache.Store(key, "x");
    EXPECT_THAT(cache.Find(key), Optional(std::string("x")));
    EXPECT_EQ(cuda::AutotuneCache(path).Find(key), std::nullopt);
  }
  cache.Store("long", long_value);
  EXPECT_THAT(cache.Find("long"), Optional(long_value));
  cache.Store("longest", longest);
  EXPECT_EQ(cuda::AutotuneCache(path).Find("long"), std::nullopt);
  EXPECT_THAT(cuda::AutotuneCache(path).Find("longest"), Optional(longest));
}

TEST(AutotuneCacheTest, IgnoresAFileThatIsTooLong) {
  const TempDir dir;
  const std::string path = dir.Path("autotune.txt");
  cuda::AutotuneCache(path).Store("first", "x");
  WriteBytes(path, Bytes(path) + std::string(cuda::AutotuneCache::kMaxFileBytes, ' '));
  cuda::AutotuneCache cache(path);
  EXPECT_EQ(cache.Find("first"), std::nullopt);
  cache.Store("second", "y");
  EXPECT_THAT(cuda::AutotuneCache(path).Find("second"), Optional(std::string("y")));
}

TEST(AutotuneCacheTest, WritersAddToOneAnother) {
  const TempDir dir(MemoryDir());
  const std::string path = dir.Path("autotune.txt");
  constexpr int kWriters = 4, kEntries = 12;
  // A cache each: as separate programs.
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&path, w] {
      cuda::AutotuneCache cache(path);
      for (int i = 0; i < kEntries; ++i) cache.Store(Concat(w, " ", i), Concat(w * 100 + i));
    });
  }
  // And a cache of all threads.
  cuda::AutotuneCache shared(path);
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&shared, w] {
      for (int i = 0; i < kEntries; ++i) {
        shared.Store(Concat("shared ", w, " ", i), "x");
        EXPECT_TRUE(shared.Find(Concat("shared ", w, " ", i)).has_value());
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  cuda::AutotuneCache all(path);
  for (int w = 0; w < kWriters; ++w) {
    for (int i = 0; i < kEntries; ++i) {
      EXPECT_THAT(all.Find(Concat(w, " ", i)), Optional(Concat(w * 100 + i)));
      EXPECT_THAT(all.Find(Concat("shared ", w, " ", i)), Optional(std::string("x")));
    }
  }
}

TEST(AutotuneCacheTest, FindsItsFolderInTheEnvironment) {
  const ScopedEnvironment home("HOME", "/home/someone");
  const ScopedEnvironment caches("XDG_CACHE_HOME", nullptr);
  const ScopedEnvironment own("HALFTONE_CACHE_DIR", nullptr);
  const auto path = [] { return cuda::AutotuneCache::DefaultPath(); };
  EXPECT_EQ(path(), "/home/someone/.cache/halftone/autotune.txt");
  {
    const ScopedEnvironment no_home("HOME", nullptr);
    EXPECT_EQ(path(), "");
  }
  const ScopedEnvironment relative("XDG_CACHE_HOME", "caches");
  EXPECT_EQ(path(), "/home/someone/.cache/halftone/autotune.txt");
  const ScopedEnvironment absolute("XDG_CACHE_HOME", "/var/caches");
  EXPECT_EQ(path(), "/var/caches/halftone/autotune.txt");
  const ScopedEnvironment given("HALFTONE_CACHE_DIR", "here");
  EXPECT_EQ(path(), "here/autotune.txt");
  const ScopedEnvironment none("HALFTONE_CACHE_DIR", "");
  EXPECT_EQ(path(), "");
}

}  // namespace
}  // namespace halftone::testing
