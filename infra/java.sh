#!/bin/sh
# Spark 4.1 needs Java 17 or 21: says nothing where it is there, installs it where this user may,
# and otherwise says in one line what to run.
set -u

found() {
    java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
    command -v "$java" >/dev/null 2>&1 || return 1
    "$java" -version 2>&1 | grep -Eq 'version "(17|21)[."]'
}

found && exit 0
if command -v apt-get >/dev/null 2>&1; then
    install="apt-get update -q && apt-get install -y -q --no-install-recommends openjdk-17-jre-headless"
elif command -v dnf >/dev/null 2>&1; then
    install="dnf install -y java-17-openjdk-headless"
elif command -v apk >/dev/null 2>&1; then
    install="apk add openjdk17-jre-headless"
elif command -v brew >/dev/null 2>&1; then
    install="brew install openjdk@17"
else
    echo "Java 17 or 21 is needed: install it and set JAVA_HOME" >&2
    exit 1
fi
case $install in
brew*) as_root="" ;;
*) as_root=$([ "$(id -u)" = 0 ] || echo "sudo -n") ;;
esac
echo "Java 17 or 21 is needed; installing: $install" >&2
if ! $as_root sh -c "$install" >/dev/null 2>&1; then
    echo "Java 17 or 21 is needed; run: ${as_root:+sudo }sh -c '$install'" >&2
    exit 1
fi
found || { echo "Java 17 was installed, but another Java comes first: set JAVA_HOME" >&2; exit 1; }
