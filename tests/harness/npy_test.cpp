// SPDX-License-Identifier: MIT
//
// .npy files: what is written comes back, what is malformed is named, and a failed write leaves
// what was there.

#include "common/harness/base/npy.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "common/harness/base/files.h"
#include "tests/process.h"

namespace gg {
namespace {

using testing_gg::Folder;

std::string with_header(const std::string& dictionary, const std::string& data, char version = 1) {
  std::string file = "\x93NUMPY";
  file += {version, 0, char(dictionary.size() & 0xFF), char(dictionary.size() >> 8)};
  return file + dictionary + data;
}
std::string dictionary(const std::string& type, const std::string& order, const std::string& shape) {
  return "{'descr': " + type + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}
const std::string kGood = with_header(dictionary("'<i4'", "False", "(2, 3)"), std::string(24, 'x'));

TEST(Npy, WritesTheBytesThatNumpyWrites) {
  const Folder folder;
  const int32_t data[] = {1, -2};
  write_npy(folder.at("x.npy"), "<i4", {2}, data, sizeof data);
  std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }";
  header += std::string(117 - header.size(), ' ') + "\n";
  const std::string wanted = std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header +
                             std::string("\x01\x00\x00\x00\xFE\xFF\xFF\xFF", 8);
  EXPECT_EQ(testing_gg::text_of(folder.at("x.npy")), wanted);
  EXPECT_FALSE(std::filesystem::exists(folder.at("x.npy.new")));
}

TEST(Npy, WhatIsWrittenComesBack) {
  const Folder folder;
  const std::string path = folder.at("x.npy");
  const std::vector<std::vector<int64_t>> shapes = {{},           {1}, {3, 4}, {2, 0, 5}, {1, 2, 3, 4, 5},
                                                    {100, 100, 7}};
  for (const std::vector<int64_t>& shape : shapes) {
    NpyArray array{"<u2", shape, {}};
    for (int64_t i = 0; i < array.elements() * 2; ++i) array.data.push_back(char(i * 7));
    write_npy(path, array.type, shape, array.data.data(), array.data.size());
    EXPECT_EQ((testing_gg::text_of(path).size() - array.data.size()) % 64, 0u);
    const NpyArray back = read_npy(path, Format::bf16, shape.size());
    EXPECT_EQ(back.type, "<u2");
    EXPECT_EQ(back.shape, shape);
    EXPECT_EQ(back.data, array.data);
  }
}

TEST(Npy, HeadersInAnotherOrderAreRead) {
  const Folder folder;
  testing_gg::write_text(folder.at("x.npy"),
                         with_header("{'shape': (2,3),'fortran_order':False,  'descr':'|u1'}", "abcdef"));
  const NpyArray array = read_npy(folder.at("x.npy"));
  EXPECT_EQ(array.type, "|u1");
  EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 3}));
}

TEST(Npy, OfAnyTypeTakesWhatHasASize) {
  const Folder folder;
  const std::string path = folder.at("x.npy");
  for (const char* type : {"<f4", "=i4", "<c8", "|V2", "|b1", "<U3", "|S5", "<f16", "<M8[ns]"}) {
    const bool wide = std::string(type) == "<U3";
    const size_t bytes = wide ? 12 : size_t(std::atoi(type + 2));
    testing_gg::write_text(path, with_header(dictionary("'" + std::string(type) + "'", "False", "(2, 3)"),
                                             std::string(6 * bytes, 'x')));
    const NpyArray array = read_npy_of_any_type(path);
    EXPECT_EQ(array.type, type);
    EXPECT_EQ(array.data.size(), 6 * bytes) << type;
  }
  for (const char* type : {"O", "|O", "<f", "<q8", "f4", "<f4x", ">i4", ">c8", ">M8[ns]"}) {
    testing_gg::write_text(path, with_header(dictionary("'" + std::string(type) + "'", "False", "(2, 3)"),
                                             std::string(24, 'x')));
    EXPECT_TRUE(testing_gg::error_of([&] { read_npy_of_any_type(path); })) << type;
  }
}

struct Malformed {
  const char* name;
  std::string content;
  const char* says;
};

void PrintTo(const Malformed& file, std::ostream* out) { *out << file.name; }

class MalformedNpy : public testing::TestWithParam<Malformed> {};

TEST_P(MalformedNpy, IsRefusedByName) {
  const Folder folder;
  const std::string path = folder.at("tensor.npy");
  testing_gg::write_text(path, GetParam().content);
  const auto error = testing_gg::error_of([&] { read_npy(path); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, Exit::bad_input);
  EXPECT_TRUE(testing_gg::one_line_with(error->what() + std::string("\n"), GetParam().says));
  EXPECT_EQ(std::string(error->what()).rfind(path + ": ", 0), 0u) << error->what();
}

INSTANTIATE_TEST_SUITE_P(
    Files, MalformedNpy,
    testing::ValuesIn(std::vector<Malformed>{
        {"Empty", "", "not a .npy file"},
        {"Text", "1.0 2.0 3.0 4.0 5.0", "not a .npy file"},
        {"WrongMagic", "\x93NUMPX" + kGood.substr(6), "not a .npy file"},
        {"CutInThePreamble", kGood.substr(0, 9), "not a .npy file"},
        {"Version2", with_header(dictionary("'<i4'", "False", "(2, 3)"), std::string(24, 'x'), 2),
         "version 2.0"},
        {"CutInTheHeader", kGood.substr(0, 30), "truncated"},
        {"CutInTheData", kGood.substr(0, kGood.size() - 1), "23 bytes"},
        {"NoData", kGood.substr(0, kGood.size() - 24), "0 bytes"},
        {"TrailingByte", kGood + "x", "25 bytes"},
        {"FortranOrder", with_header(dictionary("'<i4'", "True", "(2, 3)"), std::string(24, 'x')), "Fortran"},
        {"BigEndian", with_header(dictionary("'>i4'", "False", "(2, 3)"), std::string(24, 'x')),
         "has type '>i4', which is big-endian; only little-endian is read: save "},
        {"Complex", with_header(dictionary("'<c8'", "False", "(3,)"), std::string(24, 'x')), "<c8"},
        {"LongType", with_header(dictionary("'<f16'", "False", "(3,)"), std::string(48, 'x')), "<f16"},
        {"Record", with_header(dictionary("[('x', '<i4')]", "False", "(6,)"), std::string(24, 'x')), "type"},
        {"NegativeExtent", with_header(dictionary("'<i4'", "False", "(-2, -3)"), std::string(24, 'x')),
         "'-2', which is no extent"},
        {"NoExtent", with_header(dictionary("'<i4'", "False", "(2, 3x)"), std::string(24, 'x')), "3x"},
        {"HugeExtent", with_header(dictionary("'<i4'", "False", "(99999999999999999999,)"), ""), "9999999"},
        {"OverflowingShape", with_header(dictionary("'<i4'", "False", "(4611686018427387904, 1)"), ""),
         "4611686018427387904"},
        {"ProductThatWrapsToTheSize",  // 4 * 2^32 * 2^30 is 0 modulo 2^64
         with_header(dictionary("'<i4'", "False", "(4294967296, 1073741824)"), ""), "overflows"},
        {"ShapeNoTuple", with_header(dictionary("'<i4'", "False", "6"), std::string(24, 'x')), "tuple"},
        {"NoShape", with_header("{'descr': '<i4', 'fortran_order': False}", std::string(24, 'x')), "'shape'"},
        {"NoType", with_header("{'fortran_order': False, 'shape': (6,)}", std::string(24, 'x')), "'descr'"},
        {"HeaderThatEnds",
         std::string("\x93NUMPY\x01\x00\x0A\x00", 10) + "{'descr':  ", "its header ends after 'descr'"},
        {"NoOrder", with_header("{'descr': '<i4', 'shape': (6,)}", std::string(24, 'x')), "'fortran_order'"},
    }),
    [](const auto& info) { return info.param.name; });

TEST(Npy, NoFileAndADirectoryAreRefusedByName) {
  const Folder folder;
  for (const std::string& path : {folder.at("none.npy"), folder.path}) {
    const auto error = testing_gg::error_of([&] { read_npy(path); });
    ASSERT_TRUE(error) << path;
    EXPECT_EQ(error->code, Exit::bad_input);
    EXPECT_NE(std::string(error->what()).find(path), std::string::npos) << error->what();
  }
}

TEST(Npy, AnotherTypeOrRankIsRefusedByName) {
  const Folder folder;
  const std::string path = folder.at("a.npy");
  testing_gg::write_text(path, kGood);
  const auto type = testing_gg::error_of([&] { read_npy(path, Format::bf16, 2); });
  ASSERT_TRUE(type);
  EXPECT_EQ(type->code, Exit::bad_input);
  EXPECT_EQ(type->what(), path + ": has type '<i4', bf16 travels as '<u2': convert it");
  const auto hint = [](const std::string& type) { return "--type " + type; };
  const auto other = testing_gg::error_of([&] { read_npy(path, Format::bf16, 2, hint); });
  ASSERT_TRUE(other);
  EXPECT_EQ(other->what(), std::string(type->what()) + ", or give --type <i4");
  const auto rank = testing_gg::error_of([&] { read_npy(path, Format::i32, 3); });
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->code, Exit::bad_input);
  EXPECT_EQ(rank->what(), path + ": has shape [2, 3], 3 dimensions are wanted: reshape it");
}

// Writes as if to a full disk: the file system takes the first bytes and refuses the rest.
[[noreturn]] void write_with_little_room(const std::string& path) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{1000, 1000};
  setrlimit(RLIMIT_FSIZE, &limit);
  const auto error = testing_gg::error_of([&] { write_file(path, std::string(5000, 'n')); });
  std::fputs(error ? error->what() : "written", stderr);
  std::_Exit(error ? int(error->code) : 0);
}

TEST(WriteFile, AFullDiskLeavesTheEarlierFileWhole) {
  const Folder folder;
  const std::string path = folder.at("x.csv");
  write_file(path, "earlier");
  EXPECT_EXIT(write_with_little_room(path), testing::ExitedWithCode(int(Exit::cannot_write)),
              "x.csv: writing failed: File too large");
  EXPECT_EQ(testing_gg::text_of(path), "earlier");
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
}

TEST(WriteFile, ReplacesTheWholeFile) {
  const Folder folder;
  write_file(folder.at("x"), "a long earlier text");
  write_file(folder.at("x"), "short");
  EXPECT_EQ(testing_gg::text_of(folder.at("x")), "short");
}

TEST(WriteFile, WhatCannotBeReplacedIsNamedBeforeAndAfter) {
  const Folder folder;
  for (const std::string& path : {folder.at("none/x.csv"), folder.path, std::string("/dev/null")}) {
    for (const auto& call : {+[](const std::string& p) { write_file(p, "text"); }, +require_writable}) {
      const auto error = testing_gg::error_of([&] { call(path); });
      ASSERT_TRUE(error) << path;
      EXPECT_EQ(error->code, Exit::cannot_write);
      EXPECT_NE(std::string(error->what()).find(path + ": "), std::string::npos) << error->what();
    }
  }
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  require_writable(folder.at("new.csv"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path));
}

}  // namespace
}  // namespace gg
