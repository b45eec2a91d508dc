// Whether a kernel's parameters are those of the problem. A driver launch
// passes raw bytes, so `double* x` or `long n` would read garbage on a GPU;
// they must not compile by way of a friendly conversion. Shared by both
// executors.
#pragma once

namespace ke_device {
template <class T>
struct plain {  // const and restrict do not change what is passed
  typedef T type;
};
template <class T>
struct plain<const T> {
  typedef T type;
};
template <class T>
struct plain<T* __restrict> {
  typedef T* type;
};
template <class T>
struct pointee {
  typedef T type;
};
template <class T>
struct pointee<const T> {
  typedef T type;
};
template <class T>
struct pointee<volatile T> {
  typedef T type;
};
template <class T>
struct pointee<const volatile T> {
  typedef T type;
};
// Signedness may differ: the bits mean the same for the values passed.
template <class T>
struct unsign {
  typedef T type;
};
// clang-format off
template <> struct unsign<unsigned> { typedef int type; };
template <> struct unsign<unsigned long> { typedef long long type; };
template <> struct unsign<long> { typedef long long type; };
template <> struct unsign<unsigned long long> { typedef long long type; };
template <> struct unsign<unsigned char> { typedef signed char type; };
template <> struct unsign<char> { typedef signed char type; };
// clang-format on
template <class P>
struct normal {
  typedef typename unsign<P>::type type;
};
template <class T>
struct normal<T*> {
  typedef typename unsign<typename pointee<T>::type>::type* type;
};
template <class Have, class Want>
struct fits {
  static constexpr bool value =
      same<typename normal<typename plain<Have>::type>::type,
           typename normal<Want>::type>::value;
};
template <class... P>
struct list {};
template <class F>
struct parameters;
template <class R, class... P>
struct parameters<R (*)(P...)> {
  typedef list<P...> type;
  static constexpr int count = sizeof...(P);
  static constexpr bool is_void = same<R, void>::value;
};
template <class R, class... P>
struct parameters<R (*)(P...) noexcept> : parameters<R (*)(P...)> {};
template <int I, class L>
struct at;
template <class H, class... P>
struct at<0, list<H, P...>> {
  typedef H type;
};
template <int I, class H, class... P>
struct at<I, list<H, P...>> : at<I - 1, list<P...>> {};
template <int I, class F>
using parameter = typename at<I, typename parameters<F>::type>::type;
}  // namespace ke_device
